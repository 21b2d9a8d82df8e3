// The table of the runs: a click on a heading sorts it, a word leaves the rows that have it. No request leaves the page.
document.querySelectorAll("table.runs").forEach((table) => {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const [cell, text] = [row.cells[column], row.cells[column].textContent.trim()];
    return text === "" || cell.dataset.value === "nan" ? "" : (cell.dataset.value ?? text);
  };
  const compare = (a, b, sign) => {
    if (a === "" || b === "") return (a === "") - (b === ""); // empty cells are last in both directions
    const [x, y] = [Number(a), Number(b)];
    return sign * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y);
  };
  const tokens = (text) => text.toLowerCase().split(/\s+/).map((token) => token.replace(/,$/, ""));
  // KEY=VALUE is found as a whole, so seed=1 is not seed=10; the key may be without its group.
  const has = (found, word) =>
    /=./.test(word)
      ? found.some((token) => token === word || token.endsWith(`.${word}`))
      : found.join(" ").includes(word);
  headings.slice(0, -1).forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => compare(value(a, column), value(b, column), down ? -1 : 1));
      body.append(...rows);
    });
  });
  const filter = document.createElement("div");
  const label = document.createElement("label");
  const field = document.createElement("input");
  const shown = document.createElement("output");
  field.type = "search";
  field.placeholder = "air POF-MKL eta=0.1";
  filter.className = "filter";
  shown.setAttribute("aria-live", "polite");
  label.append("Show runs with ", field);
  filter.append(label, " ", shown);
  table.parentElement.before(filter);
  field.addEventListener("input", () => {
    const words = tokens(field.value.trim());
    let left = 0;
    [...body.rows].forEach((row) => {
      const found = [...row.cells].flatMap((cell) => tokens(cell.textContent));
      row.hidden = !words.every((word) => has(found, word));
      left += !row.hidden;
    });
    // It is printed, too: a paper that shows some of the rows says so.
    shown.textContent = words.join("") ? `${left} of ${body.rows.length} runs, those with ${words.join(" ")}` : "";
  });
});
