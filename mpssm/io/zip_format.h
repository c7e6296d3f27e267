// SPDX-License-Identifier: MIT
// Private to io/: constants of the zip format, for its reader and its writer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpssm::io {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kEndSignature = 0x06054b50;
inline constexpr std::uint32_t kEnd64Signature = 0x06064b50;
inline constexpr std::uint32_t kEnd64LocatorSignature = 0x07064b50;
inline constexpr std::size_t kLocalBytes = 30;
inline constexpr std::size_t kCentralBytes = 46;
inline constexpr std::size_t kEndBytes = 22;
inline constexpr std::size_t kEnd64Bytes = 56;
inline constexpr std::size_t kEnd64LocatorBytes = 20;
inline constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // "see the zip64 field"
inline constexpr std::uint16_t kIn64Short = 0xFFFF;
inline constexpr std::uint16_t kZip64Field = 1;
inline constexpr std::uint16_t kEncryptionFlags = 1 << 0 | 1 << 6 | 1 << 13;
inline constexpr std::uint16_t kUtf8Flag = 1 << 11;
inline constexpr std::uint16_t kStored = 0;
inline constexpr std::uint16_t kDeflated = 8;

}  // namespace mpssm::io
