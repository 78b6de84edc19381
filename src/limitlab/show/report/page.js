"use strict";
// This script sorts, filters and searches the table of claims. A link opens its card, and printing opens all cards. The page is readable without it.
(() => {
  const ledger = document.getElementById("ledger");
  if (ledger) {
    const body = ledger.tBodies[0];
    const rows = [...body.rows];
    const field = (id) => document.getElementById(id);
    field("search").form.hidden = false;
    field("search").form.addEventListener("submit", (event) => event.preventDefault());

    const filter = () => {
      const words = field("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      const verdict = field("verdict").value, area = field("area").value;
      let shown = 0;
      for (const row of rows) {
        const fits = words.every((word) => row.dataset.words.includes(word))
          && (!verdict || row.dataset.verdict === verdict) && (!area || row.dataset.area === area);
        row.hidden = !fits;
        shown += fits;
      }
      field("shown").textContent = `${shown} of ${rows.length} claims`;
    };
    for (const id of ["search", "verdict", "area"]) field(id).addEventListener("input", filter);
    for (const chip of document.querySelectorAll("[data-choose]")) {
      chip.addEventListener("click", () => { field("verdict").value = chip.dataset.choose; filter(); });
    }
    filter();

    const heads = [...ledger.tHead.rows[0].cells];
    const value = (row, column) => row.cells[column].dataset.key ?? row.cells[column].textContent;
    heads.forEach((head, column) => head.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const numeric = head.classList.contains("number");
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      rows.sort((a, b) => {
        const x = value(a, column), y = value(b, column);
        return sign * (numeric ? (parseFloat(x) || 0) - (parseFloat(y) || 0) : x.localeCompare(y));
      });
      body.append(...rows);
    }));
  }

  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.matches("details.card")) { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  open();

  for (const button of document.querySelectorAll("[data-cards]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const unfold = button.dataset.cards === "open";
      for (const card of document.querySelectorAll("details.card")) card.open = unfold;
    });
  }
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.card:not([open])")];
    for (const card of folded) card.open = true;
  });
  addEventListener("afterprint", () => { for (const card of folded) card.open = false; });
})();
