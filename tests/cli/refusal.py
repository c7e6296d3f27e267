# SPDX-License-Identifier: MIT
"""What a refusal must look like: one line that says what is wrong, and nothing left behind."""

import program

NEVER = ("terminate called", "Segmentation", "c10::Error", "Exception raised from", "Traceback", "std::")


class BadInput(program.ProgramTest):
    def refuse(self, args, *phrases, code=1, leaves=(), **options):
        """The program ends with `code` and one line holding all phrases; only `leaves` is new."""
        with self.subTest(" ".join(map(str, args))):
            before = program.contents(self.folder)
            result = self.run_program(*args, **options)
            self.check_message(result, phrases, code)
            after = program.contents(self.folder)
            self.assertEqual({path for path in after if path not in before}, set(leaves), "left behind")
            self.assertEqual({path: after.get(path) for path in before}, before, "changed")

    def check_message(self, result, phrases, code):
        lines = [line for line in result.err.splitlines() if not line.startswith("note: ")]
        self.assertEqual(result.code, code, result.err)
        self.assertEqual(len(lines), 1, result.err)
        self.assertTrue(lines[0].startswith("mpssm: "), result.err)
        for word in NEVER:
            self.assertNotIn(word, result.err)
        for phrase in phrases:
            self.assertIn(phrase, lines[0])

    def refuse_train(self, dataset, *rest, **options):
        """As above; the phrases are those of `rest` that come after the arguments."""
        args, phrases = rest[0], rest[1:]
        self.refuse(["train", dataset, "--quiet", "--out", "out", *args], *phrases, **options)
