// Draws live figures and thumbnails, whose numbers are JSON inside the page. No library is used, and nothing is loaded.
(() => {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const DASHES = { "-": "", "--": "7 4", ":": "2 3" };
  let count = 0;

  function svgElement(name, attributes, parent) {
    const made = document.createElementNS(NS, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (parent) parent.append(made);
    return made;
  }
  function element(name, className, parent, html) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (html !== undefined) made.innerHTML = html;
    if (parent) parent.append(made);
    return made;
  }
  const colour = index => `var(--ll-${index % 7})`;

  // -- axes ------------------------------------------------------------------------------------------------------------
  function scale(low, high, log, start, end) {
    const f = log ? Math.log : x => x;
    const a = f(low), b = f(high);
    return x => (x === null || (log && x <= 0) ? null : start + ((f(x) - a) / (b - a)) * (end - start));
  }
  function ticks(low, high, log, most) {
    const decades = log ? Math.log10(high / low) : 0;
    if (log && decades > 0.9) {
      const every = Math.ceil(decades / most);
      for (const steps of decades < 3 ? [[1, 2, 5], [1, 3], [1]] : [[1]]) {
        const places = [];
        for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
          for (const step of steps)
            if (power % every === 0 && step * 10 ** power >= low * 0.999 && step * 10 ** power <= high * 1.001) places.push(step * 10 ** power);
        if (places.length <= most + 1 || steps.length === 1) return places;
      }
    }
    const raw = (high - low) / most, unit = 10 ** Math.floor(Math.log10(raw));
    const step = unit * [1, 2, 2.5, 5, 10].find(factor => factor * unit >= raw * 0.999);
    const places = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) places.push(k * step);
    return places;
  }
  function words(value) {
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e5 || size < 1e-3)) {
      const power = Math.floor(Math.log10(size) + 1e-9), factor = Number((value / 10 ** power).toPrecision(3));
      const raised = String(power).replace(/./g, c => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
      return factor === 1 ? `10${raised}` : `${factor}·10${raised}`;
    }
    return String(Number(value.toPrecision(5))).replace("-", "−");
  }

  // -- one panel -------------------------------------------------------------------------------------------------------
  function polyline(places, values, x, y) {
    let path = "", pen = "M";
    places.forEach((place, i) => {
      const u = x(place), v = values[i] === null ? null : y(values[i]);
      if (u === null || v === null) { pen = "M"; return; }
      path += `${pen}${u.toFixed(1)} ${Math.max(-2000, Math.min(3000, v)).toFixed(1)}`;
      pen = "L";
    });
    return path;
  }
  function stairs(edges, heights, x, y) {
    let path = `M${x(edges[0]).toFixed(1)} ${y(0).toFixed(1)}`;
    heights.forEach((height, i) => {
      path += `V${y(height).toFixed(1)}H${x(edges[i + 1]).toFixed(1)}`;
    });
    return path + `V${y(0).toFixed(1)}Z`;
  }
  function marker(number, x, y, size) {
    if (number % 3 === 1) return `M${x - size} ${y - size}h${2 * size}v${2 * size}h${-2 * size}Z`;
    if (number % 3 === 2) return `M${x} ${y - 1.2 * size}L${x + 1.2 * size} ${y + size}H${x - 1.2 * size}Z`;
    return `M${x - size} ${y}a${size} ${size} 0 1 0 ${2 * size} 0a${size} ${size} 0 1 0 ${-2 * size} 0Z`;
  }

  // the range of the vertical axis: that of the frame and of the frame at the declared values, with margins
  function verticalRange(data, frames, panel) {
    const ranges = frames.map(frame => frame.r[panel]);
    let low = Math.min(...ranges.map(range => range[0])), high = Math.max(...ranges.map(range => range[1]));
    if (data.log[1]) {
      const margin = Math.max((high / low) ** 0.05, 1.02);
      return [low / margin, high * margin];
    }
    const margin = 0.05 * (high - low || Math.abs(high) || 1);
    return [low === 0 ? 0 : low - margin, high + margin];
  }

  function drawPanel(svg, data, frame, start, panel, width, height, small) {
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.height = `${height}px`;
    const shown = frame ? [frame, start] : [start];
    const [bottom, top] = verticalRange(data, shown, panel);
    const box = small ? { left: 3, right: width - 3, top: 3, bottom: height - 3 } : { left: 58, right: width - 14, top: 10, bottom: height - 26 };
    const first = data.axis[0], last = data.axis[data.axis.length - 1];
    const x = scale(first, last, data.log[0], box.left + (small ? 2 : 6), box.right - (small ? 2 : 6));
    const y = scale(bottom, top, data.log[1], box.bottom, box.top);
    const clip = `ll-clip-${count++}`;
    const area = svgElement("clipPath", { id: clip }, svgElement("defs", {}, svg));
    svgElement("rect", { x: box.left, y: box.top - 1, width: box.right - box.left, height: box.bottom - box.top + 2 }, area);
    if (!small) {
      for (const tick of ticks(first, last, data.log[0], Math.max(4, Math.floor(width / 110)))) {
        const u = x(tick);
        svgElement("line", { class: "ll-gridline", x1: u, x2: u, y1: box.top, y2: box.bottom }, svg);
        svgElement("text", { x: u, y: height - 8, "text-anchor": "middle" }, svg).textContent = words(tick);
      }
      for (const tick of ticks(bottom, top, data.log[1], Math.max(4, Math.floor(height / 50)))) {
        const v = y(tick);
        svgElement("line", { class: "ll-gridline", x1: box.left, x2: box.right, y1: v, y2: v }, svg);
        svgElement("text", { x: box.left - 6, y: v + 4.5, "text-anchor": "end" }, svg).textContent = words(tick);
      }
    }
    svgElement("path", { class: "ll-frame", d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }, svg);
    const inside = svgElement("g", { "clip-path": `url(#${clip})` }, svg);
    const here = entry => data.styles[entry[0]].panel === panel;
    const at = entry => entry[1].map(place => data.axis[place]);
    for (const [axis, value, , curve] of (!small && (frame || start).m) || []) {
      if (!here([0]) && axis === "y") continue;
      const place = axis === "x" ? x(value) : y(value);
      if (place === null) continue;
      const ends = axis === "x" ? { x1: place, x2: place, y1: box.top, y2: box.bottom } : { x1: box.left, x2: box.right, y1: place, y2: place };
      svgElement("line", { class: "ll-mark", ...ends, ...(curve === null ? {} : { style: `stroke: ${colour(curve)}` }) }, inside);
    }
    if (frame !== start)
      for (const entry of start.l.filter(here)) svgElement("path", { class: "ll-ghost", d: polyline(at(entry), entry[2], x, y) }, inside);
    for (const entry of ((frame && frame.h) || []).filter(here)) {
      const style = data.styles[entry[0]];
      svgElement("path", { class: "ll-area", d: stairs(data.places, entry[1], x, y), style: `fill: ${colour(style.colour)}` }, inside);
    }
    for (const entry of ((frame && frame.l) || []).filter(here)) {
      const style = data.styles[entry[0]];
      const line = { class: "ll-curve", d: polyline(at(entry), entry[2], x, y), style: `stroke: ${colour(style.colour)}` };
      svgElement("path", { ...line, "stroke-dasharray": DASHES[style.dashes] || "none" }, inside);
    }
    const own = frame && (frame.p || frame.h), source = own ? frame : start;
    const points = svgElement("g", own ? {} : { class: "ll-pale" }, inside);
    for (const [number, means, errors] of (source.p || []).filter(here)) {
      const style = data.styles[number], size = small ? 1.8 : 4;
      means.forEach((mean, i) => {
        const u = x(data.places[i]), v = mean === null ? null : y(mean);
        if (u === null || v === null || u < box.left - 1 || u > box.right + 1) return;
        const ink = own ? colour(style.colour) : "var(--ll-soft)";
        if (!small && errors && errors[i]) {
          const low = y(mean - errors[i]), high = y(mean + errors[i]);
          if (high !== null) svgElement("line", { class: "ll-bar", x1: u, x2: u, y1: low === null ? box.bottom : low, y2: high, style: `stroke: ${ink}` }, points);
        }
        svgElement("path", { class: "ll-point", d: marker(style.colour, u, v, size), style: `stroke: ${ink}` }, points);
      });
    }
  }

  // -- a live figure ---------------------------------------------------------------------------------------------------
  function numbersOf(root) {
    return JSON.parse(root.querySelector("script[type='application/json']").textContent);
  }

  function liveFigure(root) {
    const data = numbersOf(root), start = data.frames[data.start];
    const position = data.start ? data.start.split(",").map(Number) : [];
    root.querySelectorAll("noscript").forEach(each => each.remove());
    element("p", "ll-setting", root).textContent = data.setting;
    const legend = element("div", "ll-legend", root);
    const panels = [];
    for (let panel = 0; panel < data.panels; panel++) {
      if (data.panels > 1 || data.y.length === 1) element("p", "ll-axis", root, data.y[panel]);
      panels.push(svgElement("svg", { role: "img" }, root));
    }
    element("p", "ll-axis ll-x", root, data.x);
    const sliders = element("div", "ll-sliders", root);
    const foot = element("p", "ll-foot", root);
    const reset = element("button", "", foot);
    reset.type = "button";
    reset.textContent = "Reset";
    const status = element("span", "", foot);
    status.setAttribute("role", "status");

    const controls = data.sliders.map((slider, number) => {
      const box = element("div", "ll-slider", sliders), id = `ll-control-${count++}`;
      const label = element("label", "", box);
      label.htmlFor = id;
      label.title = slider.help;
      element("span", "", label, slider.label).id = `${id}-name`;
      const value = slider.choice ? null : element("b", "", label);
      const control = element(slider.choice ? "select" : "input", "", box);
      control.id = id;
      control.setAttribute("aria-labelledby", `${id}-name`);
      if (slider.choice) slider.values.forEach((text, i) => { const option = element("option", "", control); option.value = i; option.textContent = text; });
      else Object.assign(control, { type: "range", min: 0, max: slider.values.length - 1, step: 1 });
      control.addEventListener("input", () => { position[number] = Number(control.value); draw(); });
      return () => {
        control.value = position[number];
        if (value) { value.textContent = slider.values[position[number]]; control.setAttribute("aria-valuetext", slider.values[position[number]]); }
      };
    });
    reset.addEventListener("click", () => { data.start.split(",").forEach((place, i) => { position[i] = Number(place); }); draw(); });

    const entries = data.styles.map((style, number) => [style, number]).filter(([style]) => style.kind === "line" && style.label);
    function drawLegend(frame) {
      legend.replaceChildren();
      const swatch = (ink, dashes) =>
        `<svg style="width:26px;height:10px" viewBox="0 0 26 10" aria-hidden="true"><path d="M1 5H25" style="stroke:${ink}" stroke-width="2.4" stroke-dasharray="${dashes || "none"}"/></svg>`;
      for (const [style, number] of entries)
        if (frame.l.some(entry => entry[0] === number)) element("span", "", legend, `${swatch(colour(style.colour), DASHES[style.dashes])}<span>${style.label}</span>`);
      const said = new Set();
      for (const [, , label] of frame.m || [])
        if (!said.has(label)) { said.add(label); element("span", "", legend, `${swatch("var(--ll-soft)", "1.5 3.5")}<span></span>`).lastChild.textContent = data.marks[label]; }
    }
    function draw() {
      const key = position.join(","), frame = data.frames[key] || null;
      const width = Math.max(260, Math.round(panels[0].getBoundingClientRect().width || root.clientWidth || 640));
      const most = Math.max(300, Math.round(window.innerHeight * 0.5));
      const height = data.panels > 1 ? Math.max(200, Math.min(0.36 * width, 0.5 * most)) : Math.max(300, Math.min(0.56 * width, most, 520));
      panels.forEach((svg, panel) => {
        svg.setAttribute("aria-label", `${data.finding}. ${data.sliders.map((slider, i) => `${slider.name} ${slider.values[position[i]]}`).join(", ")}`);
        drawPanel(svg, data, frame, start, panel, width, Math.round(height), false);
      });
      drawLegend(frame || start);
      controls.forEach(update => update());
      reset.disabled = key === data.start;
      let said = data.note || "";
      if (!frame) said = data.missing[key] || "";
      else if (key !== data.start) {
        said = "The grey line is the curve at the first values.";
        if (start.p && !frame.p) said += " The grey points were simulated at the first values.";
        if (start.h && !frame.h) said += " There is no simulation at these values.";
      }
      status.textContent = said;
      root.dataset.key = key;
    }
    draw();
    let before = root.clientWidth;
    new ResizeObserver(() => { if (root.clientWidth !== before) { before = root.clientWidth; draw(); } }).observe(root);
  }

  function thumbnail(root) {
    const data = numbersOf(root), svg = svgElement("svg", { role: "img", "aria-label": root.dataset.alt }, root);
    drawPanel(svg, data, data.frames[data.start], data.frames[data.start], 0, 220, 130, true);
    svg.style.height = "auto";
  }

  // -- the list of laws --------------------------------------------------------------------------------------------------
  function gallery(root) {
    const field = root.querySelector("input"), status = root.querySelector("[role=status]");
    const cards = [...root.querySelectorAll(".ll-card")];
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const card of cards) {
        card.hidden = !wanted.every(word => card.dataset.words.includes(word));
        shown += !card.hidden;
      }
      for (const group of root.querySelectorAll(".ll-group")) group.hidden = !group.querySelector(".ll-card:not([hidden])");
      status.textContent = shown ? `${shown} of ${cards.length} laws` : `No law contains ${wanted.length > 1 ? "all of these words" : "this word"}. Try a shorter or more general word.`;
    });
  }

  document.querySelectorAll(".ll-figure").forEach(liveFigure);
  document.querySelectorAll(".ll-thumb").forEach(thumbnail);
  document.querySelectorAll(".ll-gallery").forEach(gallery);
})();
