// Zoom, search and reset of a flame graph that is opened by itself.
(() => {
  "use strict";
  const svg = document.documentElement;
  const space = "http://www.w3.org/2000/svg";
  const drawnWidth = Number(svg.getAttribute("width"));
  const height = Number(svg.getAttribute("height"));
  const margin = 12;
  // The picture is as wide as the window, and letters keep their size.
  let pageWidth = drawnWidth;
  let inner = pageWidth - 2 * margin;
  let zoomed = null;
  const title = svg.querySelector("text.t");
  const wholeTitle = svg.querySelector("title").textContent;
  const about = svg.querySelector("text.a");
  const wholeAbout = about.textContent;
  const legend = [...svg.querySelectorAll("text.l")];
  const boxes = [];
  for (const group of svg.querySelectorAll("g")) {
    const rect = group.querySelector("rect");
    const tip = group.querySelector("title").textContent;
    // Shares of the width, which the window does not change.
    const start = (Number(rect.getAttribute("x")) - margin) / inner;
    boxes.push({
      group, rect, tip, start,
      y: Number(rect.getAttribute("y")),
      end: start + Number(rect.getAttribute("width")) / inner,
      text: group.querySelector("text"),
    });
    group.setAttribute("tabindex", "0");
  }

  const style = document.createElementNS(space, "style");
  style.textContent = "g{cursor:pointer}g:hover rect,g:focus rect{stroke:currentColor}" +
    ".found{fill:#ef70c8!important}.dim{opacity:.45}.act{cursor:pointer;text-decoration:underline}" +
    "g:focus{outline:none}";
  svg.append(style);

  function label(x, anchor, name, act) {
    const text = document.createElementNS(space, "text");
    text.setAttribute("class", act ? "a act" : "a");
    text.setAttribute("x", String(x));
    text.setAttribute("y", "22");
    text.setAttribute("text-anchor", anchor);
    text.textContent = name;
    if (act) text.addEventListener("click", act);
    svg.append(text);
    return text;
  }
  const matched = label(0, "end", "");
  const search = label(0, "end", "Search", ask);
  const reset = label(0, "end", "Reset zoom", () => zoom(null));
  reset.setAttribute("y", "39");
  reset.setAttribute("visibility", "hidden");

  function cut(text, most) {
    return text.length > most ? text.slice(0, most - 1) + "…" : text;
  }

  /** Draws for the width of the window; phones show wider windows than their screens are. */
  function fit() {
    const shown = window.innerWidth || drawnWidth;
    pageWidth = Math.max(Math.min(shown, window.screen?.width || shown), 200);
    inner = pageWidth - 2 * margin;
    svg.setAttribute("width", String(shown));
    svg.setAttribute("height", String((height * shown) / pageWidth));
    svg.setAttribute("viewBox", `0 0 ${pageWidth} ${height}`);
    const most = Math.max(Math.floor((pageWidth - 160) / 8), 8);
    title.textContent = cut(wholeTitle, most);
    about.textContent = cut(wholeAbout, Math.floor(inner / 6.6));
    for (const entry of legend) {
      const end = Number(entry.getAttribute("x")) + 6.65 * entry.textContent.length;
      const visibility = end > pageWidth - margin ? "hidden" : "visible";
      entry.setAttribute("visibility", visibility);
      entry.previousElementSibling.setAttribute("visibility", visibility);
    }
    matched.setAttribute("x", String(pageWidth - margin - 60));
    search.setAttribute("x", String(pageWidth - margin));
    reset.setAttribute("x", String(pageWidth - margin));
    zoom(zoomed);
  }

  /** Draws the boxes with `box` as wide as the picture; without one, all of them. */
  function zoom(box) {
    zoomed = box;
    reset.setAttribute("visibility", box ? "visible" : "hidden");
    const from = box ? box.start : 0;
    const width = box ? box.end - box.start : 1;
    const near = 0.2 / (drawnWidth - 2 * margin);
    for (const one of boxes) {
      // Those below the box stay as wide as the picture.
      const holds = box && one.start <= box.start + near && one.end >= box.end - near;
      const start = holds ? 0 : ((one.start - from) / width) * inner;
      const end = holds ? inner : ((one.end - from) / width) * inner;
      const isShown = end > 0 && start < inner && end - start > 0.3;
      one.group.setAttribute("visibility", isShown ? "visible" : "hidden");
      if (!isShown) continue;
      const left = margin + Math.max(start, 0);
      const right = margin + Math.min(end, inner);
      one.rect.setAttribute("x", left.toFixed(1));
      one.rect.setAttribute("width", Math.max(right - left - 0.3, 0.3).toFixed(1));
      write(one, left, right - left);
    }
  }

  /** Writes as much of a box's name as fits, and its share where there is room. */
  function write(box, left, width) {
    const most = Math.floor((width - 7) / 6.65);
    if (!box.text) {
      box.text = document.createElementNS(space, "text");
      box.text.setAttribute("y", String(box.y + 12));
      box.group.append(box.text);
    }
    const name = box.tip.replace(/( \([^()]*\))?: [\d.]+%.*$/s, "");
    const short = name.length > most && name.includes("::") ? name.slice(name.lastIndexOf("::") + 2) : name;
    box.text.setAttribute("x", (left + 3).toFixed(1));
    const percent = /: ([\d.]+)%/.exec(box.tip)?.[1] ?? "0";
    const share = ` ${Number(percent).toFixed(1)}%`;
    const hasRoom = short.length + share.length <= most;
    box.text.textContent = most < 3 ? "" : hasRoom ? short + share : cut(short, most);
  }

  /** Marks the boxes whose names contain what is asked for, and says their share. */
  function ask() {
    const wanted = (window.prompt("Functions whose names contain (empty: none)") ?? "").toLowerCase();
    const found = [];
    for (const box of boxes) {
      const is = wanted !== "" && box.tip.replace(/: [\d.]+%.*$/s, "").toLowerCase().includes(wanted);
      box.rect.classList.toggle("found", is);
      box.group.classList.toggle("dim", wanted !== "" && !is);
      if (is) found.push(box);
    }
    // Each sample once: boxes within boxes that were counted add nothing.
    found.sort((a, b) => a.start - b.start || b.end - a.end);
    let sum = 0;
    let until = 0;
    for (const box of found) {
      if (box.end <= until) continue;
      sum += box.end - Math.max(box.start, until);
      until = box.end;
    }
    matched.textContent = wanted === "" ? "" : `${(100 * sum).toFixed(1)}% matched`;
  }

  window.addEventListener("resize", fit);
  fit();
  for (const box of boxes) {
    box.group.addEventListener("click", () => zoom(box));
    box.group.addEventListener("keydown", (event) => {
      if (event.key === "Enter") zoom(box);
    });
  }
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") zoom(null);
    if (event.key === "/" || (event.key === "f" && event.ctrlKey)) {
      event.preventDefault();
      ask();
    }
  });
})();
