"use strict";
// This script searches laws and claims, sorts and filters the table of claims, opens the card that a link names, and opens all cards for
// printing. The page is readable without it.
(() => {
  const field = (id) => document.getElementById(id);
  const search = field("search");
  const tiles = [...document.querySelectorAll(".wall .tile")];
  const lawCards = [...document.querySelectorAll("#the-laws > details.card")];
  const claimCards = [...document.querySelectorAll("#the-claims > details.card")];
  const ledger = field("ledger");
  const rows = ledger ? [...ledger.tBodies[0].rows] : [];
  const choices = [...document.querySelectorAll("[data-choose]")];
  const verdictOf = new Map(tiles.map((tile) => [tile.hash, tile.dataset.verdict]));
  const number = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

  // A heading is hidden if all cards up to the next heading are hidden.
  const hideHeadings = (section) => {
    for (const heading of document.querySelectorAll(`#${section} > h3`)) {
      let next = heading.nextElementSibling, empty = true;
      for (; next && next.matches("details"); next = next.nextElementSibling) empty = empty && next.hidden;
      heading.hidden = empty;
    }
  };
  const filter = () => {
    const words = search ? search.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    const chosen = choices.filter((choice) => choice.getAttribute("aria-pressed") === "true").map((choice) => choice.dataset.choose);
    const fits = (text) => words.every((word) => text.includes(word));
    const lawFits = (text, verdict) => fits(text) && (!chosen.length || chosen.includes(verdict));
    for (const tile of tiles) tile.hidden = !lawFits(tile.dataset.words, tile.dataset.verdict);
    for (const card of lawCards) card.hidden = !lawFits(card.dataset.words ?? "", verdictOf.get(`#${card.id}`));
    for (const group of document.querySelectorAll(".wall .subject")) group.hidden = !group.querySelector(".tile:not([hidden])");
    for (const card of claimCards) card.hidden = !fits(card.dataset.words ?? "");
    const verdict = field("verdict")?.value, area = field("area")?.value;
    for (const row of rows) {
      row.hidden = !(fits(row.dataset.words) && (!verdict || row.dataset.verdict === verdict) && (!area || row.dataset.area === area));
    }
    hideHeadings("the-laws");
    hideHeadings("the-claims");
    const laws = tiles.filter((tile) => !tile.hidden).length, claims = rows.filter((row) => !row.hidden).length;
    if (field("shown")) field("shown").textContent = `${claims} of ${rows.length} claims`;
    if (field("hits")) {
      const link = claims && words.length ? `<a href="#the-ledger">${number(claims, "claim")}</a>` : number(claims, "claim");
      field("hits").innerHTML = words.length || chosen.length ? `${number(laws, "law")} and ${link}` : "";
    }
    if (field("nothing")) field("nothing").hidden = laws + claims > 0;
  };
  for (const form of document.querySelectorAll("form.tools")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  for (const id of ["search", "verdict", "area"]) field(id)?.addEventListener("input", filter);
  for (const choice of choices) {
    choice.setAttribute("aria-pressed", "false");
    choice.addEventListener("click", () => {
      choice.setAttribute("aria-pressed", String(choice.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  filter();

  if (ledger) {
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
      ledger.tBodies[0].append(...rows);
    }));
  }

  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.matches("details.card")) { target.hidden = false; target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  // A second click on the same picture does not change the address, so a card that was folded is opened here.
  addEventListener("click", (event) => { if (event.target.closest?.("a[href^='#']")?.hash === location.hash) setTimeout(open); });
  open();

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.card:not([open])")];
    for (const card of folded) card.open = true;
  });
  addEventListener("afterprint", () => { for (const card of folded) card.open = false; });
})();
