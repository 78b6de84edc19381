/* A displayed formula or code that is wider than its column is set smaller, down to 60 or 82 %; only what is still too wide scrolls. */
const SMALLEST = 0.6;
const SMALLEST_CODE = 0.82;

function fit() {
  for (const box of document.querySelectorAll("div.math")) {
    const formula = box.querySelector("mjx-container");
    if (!formula) continue;
    formula.dataset.usual ??= formula.style.fontSize || "100%";
    formula.style.fontSize = formula.dataset.usual;
    const around = box.closest(".math-wrapper") || box;
    const wanted = Math.max(around.scrollWidth, box.scrollWidth, formula.scrollWidth);
    if (wanted <= around.clientWidth + 1) continue;
    const share = Math.max(SMALLEST, (0.99 * around.clientWidth) / wanted);
    formula.style.fontSize = `${parseFloat(formula.dataset.usual) * share}%`;
  }
  for (const code of document.querySelectorAll(".highlight pre")) {
    code.style.fontSize = "";
    if (code.scrollWidth <= code.clientWidth + 1) continue;
    const share = Math.max(SMALLEST_CODE, (0.99 * code.clientWidth) / code.scrollWidth);
    code.style.fontSize = `${parseFloat(getComputedStyle(code).fontSize) * share}px`;
  }
}

window.addEventListener("load", () => {
  const typeset = window.MathJax && window.MathJax.startup && window.MathJax.startup.promise;
  Promise.resolve(typeset).then(fit);
});
window.addEventListener("resize", fit);
