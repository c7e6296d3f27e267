// Tables that sort by the column whose heading is pressed: numbers as numbers, the rest as text.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isNumber = head.classList.contains("n");
      // Numbers start with the largest, which is what one looks for.
      const before = head.getAttribute("aria-sort");
      const up = before ? before === "descending" : !isNumber;
      const body = table.tBodies[0];
      const key = (row) => {
        const text = row.cells[column].textContent.trim();
        if (!isNumber) return text;
        const number = parseFloat(text);
        return Number.isNaN(number) ? -Infinity : number;
      };
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => (isNumber ? a - b || 0 : a.localeCompare(b, "en", { numeric: true })) * (up ? 1 : -1));
      body.append(...rows.map(([, row]) => row));
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
    });
  });
}
