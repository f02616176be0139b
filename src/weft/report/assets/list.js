"use strict";
// The list of dialogues: filters, sorting, and elements for the rows in view alone. Text is set as text, never as markup.
(() => {
  const HEIGHT = 56;
  const byId = (id) => document.getElementById(id);
  let data = JSON.parse(byId("data").textContent);
  const box = byId("rows"), spacer = byId("spacer"), count = byId("count"), versus = byId("versus"), behind = byId("behind"), pane = byId("pane");
  const controls = {};
  for (const one of document.querySelectorAll("[data-filter]")) controls[one.dataset.filter] = one;
  let matching = [], chosen = -1, chosenKey = null, drawn = new Map();
  let cellKey = null; // of the number whose dialogues are shown
  const images = byId("images") ? JSON.parse(byId("images").textContent) : {};

  // A sample is {i: number, k: key of its page, id, g: {axis: group}, x: first prompt, s: [run: share], d: [run: difference to the first run],
  // r: [run: [turn: {t: number, o: outcome, s: share, d: difference to the first run, m: {metric: share or null}}]]}
  // A cell of a table is {s: number of its set of samples, r: run, m: metric if it has only one, t: turn if it has only one, n: its name and value, o: order of its dialogues if not the usual one};
  // a set that is null has all samples.
  // The same rounding as in weft/rounding.py: half-way goes away from zero.
  const figure = (share, sign) => {
    const number = data.full * share, scale = 10 ** data.digits;
    const rounded = Math.floor(Number((Math.abs(number) * scale).toPrecision(12)) + 0.5) / scale;
    const before = number < 0 && rounded ? "-" : sign ? "+" : "";
    return before + rounded.toFixed(data.digits);
  };
  const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);
  const scores = (turn, metric) => Object.entries(turn.m).filter(([name, value]) => value !== null && (!metric || name === metric)).map(([, value]) => value);
  const turnsOf = (sample, run, pick) => (sample.r[run] || []).filter((turn) => pick.turn === "" || turn.t === Number(pick.turn));
  // without a metric, the headline score of the dialogue or the turn; with one, its mean
  const scoreOf = (sample, run, pick) => {
    if (!pick.metric && pick.turn === "") return sample.s[run] ?? null;
    const turns = turnsOf(sample, run, pick);
    return pick.metric ? mean(turns.flatMap((turn) => scores(turn, pick.metric))) : mean(turns.map((turn) => turn.s).filter((value) => value !== null));
  };

  // the difference to the first run, or of the first run to the second; over what both have scored
  const otherRunOf = (run) => (data.runs.length < 2 ? null : run === 0 ? 1 : 0);
  const differenceOf = (sample, run, pick) => {
    const rival = otherRunOf(run), late = run || rival;
    if (rival === null) return null;
    let gap;
    if (pick.metric) {
      const there = new Map(turnsOf(sample, 0, pick).map((turn) => [turn.t, turn.m[pick.metric] ?? null]));
      gap = mean(turnsOf(sample, late, pick).map((turn) => [turn.m[pick.metric] ?? null, there.get(turn.t) ?? null]).filter(([a, b]) => a !== null && b !== null).map(([a, b]) => a - b));
    } else gap = pick.turn === "" ? sample.d[late] ?? null : mean(turnsOf(sample, late, pick).map((turn) => turn.d).filter((value) => value !== null));
    return gap === null ? null : run === 0 ? -gap : gap;
  };

  function readFilters() {
    const pick = { turn: "", metric: "", outcome: "", most: 1, sort: "worst", run: 0, search: "", groups: {} };
    for (const [name, control] of Object.entries(controls)) {
      if (name.startsWith("group:")) { if (control.value) pick.groups[name.slice(6)] = control.value; }
      else if (name === "most") pick.most = control.value === "" ? 1 : Number(control.value) / data.full;
      else if (name === "run") pick.run = Number(control.value);
      else pick[name] = control.value;
    }
    return pick;
  }

  function filter() {
    const pick = readFilters(), wanted = pick.search.trim().toLowerCase();
    const cell = showCell(), ofCell = cell && data.cells.sets[cell.s] ? new Set(data.cells.sets[cell.s]) : null;
    matching = [];
    for (const sample of data.samples) {
      if (ofCell && !ofCell.has(sample.i)) continue;
      if (Object.entries(pick.groups).some(([name, value]) => sample.g[name] !== value)) continue;
      if (wanted && !sample.id.toLowerCase().includes(wanted) && !sample.x.toLowerCase().includes(wanted)) continue;
      const turns = turnsOf(sample, pick.run, pick);
      if (pick.turn !== "" && !turns.length) continue;
      if (pick.metric && !turns.some((turn) => pick.metric in turn.m)) continue;
      if (pick.outcome === "unscored") { if (!turns.some((turn) => Object.entries(turn.m).some(([name, value]) => value === null && (!pick.metric || name === pick.metric)))) continue; }
      else if (pick.outcome && !turns.some((turn) => turn.o === pick.outcome)) continue;
      const score = scoreOf(sample, pick.run, pick);
      if (pick.most < 1 && (score === null || score > pick.most + 1e-9)) continue;
      matching.push({ sample, score, gap: differenceOf(sample, pick.run, pick) });
    }
    const last = (value) => (value === null ? Infinity : value);
    if (pick.sort === "worst") matching.sort((a, b) => last(a.score) - last(b.score) || a.sample.i - b.sample.i);
    if (pick.sort === "best") matching.sort((a, b) => (a.score === null) - (b.score === null) || b.score - a.score || a.sample.i - b.sample.i);
    if (pick.sort === "gap") matching.sort((a, b) => Math.abs(b.gap || 0) - Math.abs(a.gap || 0) || a.sample.i - b.sample.i);
    for (const row of drawn.values()) row.remove();
    drawn.clear();
    spacer.style.height = matching.length * HEIGHT + "px";
    count.textContent = matching.length + " of " + data.samples.length + " dialogues";
    const rival = otherRunOf(pick.run);
    versus.hidden = rival === null;
    if (rival !== null) versus.replaceChildren("in brackets: against ", element("bdi", "", data.runs[rival]), ", over what both have scored");
    chosen = matching.findIndex((one) => one.sample.k === chosenKey);
    saveToAddress();
    draw();
  }

  // say which number the dialogues are behind
  function showCell() {
    const cell = data.cells.cells[cellKey] || null;
    behind.hidden = cell === null;
    if (cell) behind.firstChild.replaceChildren("behind the number: ", element("bdi", "", cell.n));
    return cell;
  }

  function draw() {
    const from = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - 6), to = Math.min(matching.length, Math.ceil((box.scrollTop + box.clientHeight) / HEIGHT) + 6);
    for (const [at, row] of drawn) if (at < from || at >= to) { row.remove(); drawn.delete(at); }
    for (let at = from; at < to; at++) if (!drawn.has(at)) { const row = buildRow(at); drawn.set(at, row); spacer.append(row); }
  }

  const element = (name, kind, text) => { const made = document.createElement(name); made.className = kind; if (text !== undefined) made.textContent = text; return made; };
  const shade = (share) => (share === null ? "sx" : "s" + Math.max(0, Math.min(10, Math.round(share * 10))));

  function buildRow(at) {
    const { sample, score, gap } = matching[at], pick = readFilters();
    const row = element("a", "row");
    row.href = pageOf(sample);
    row.style.top = at * HEIGHT + "px";
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", at === chosen ? "true" : "false");
    const first = element("span", "first"), second = element("span", "second"), cells = element("span", "cells");
    first.append(element("span", "id", sample.id), element("span", "score", score === null ? "unscored" : figure(score)));
    if (gap !== null) { const against = element("span", "gap", "(" + figure(gap, true) + ")"); against.title = figure(gap, true) + " against " + data.runs[otherRunOf(pick.run)]; first.lastChild.append(" ", against); }
    for (const turn of sample.r[pick.run] || []) {
      const value = pick.metric ? mean(scores(turn, pick.metric)) : turn.s;
      const cell = element("span", "cell " + shade(value), turn.o === "answered" ? "" : turn.o[0]);
      cell.title = "turn " + turn.t + ": " + (value === null ? "unscored" : figure(value)) + ", " + turn.o;
      cells.append(cell);
    }
    second.append(cells, element("span", "id", Object.values(sample.g).join(" · ")));
    row.append(first, second);
    row.addEventListener("click", (event) => { if (event.metaKey || event.ctrlKey || event.shiftKey) return; event.preventDefault(); open(at); });
    return row;
  }

  const pageOf = (sample) => data.single ? "#" : data.place + sample.k + data.suffix;
  const hasPane = () => getComputedStyle(pane).display !== "none"; // on a narrow screen the list has the page for itself

  function mark(at) {
    if (at < 0 || at >= matching.length) return false;
    chosen = at;
    chosenKey = matching[at].sample.k;
    for (const [place, row] of drawn) row.setAttribute("aria-selected", place === at ? "true" : "false");
    const top = at * HEIGHT;
    if (top < box.scrollTop || top + HEIGHT > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 2);
    saveToAddress();
    return true;
  }

  function open(at) {
    if (!mark(at)) return;
    const sample = matching[at].sample;
    if (data.single) {
      const shown = byId("d" + sample.k).content.cloneNode(true);
      for (const one of shown.querySelectorAll("img[data-image]")) one.src = images[one.dataset.image];
      pane.replaceChildren(shown);
      pane.scrollTop = 0;
      if (!hasPane()) { pane.style.display = "block"; pane.scrollIntoView(); }
    } else if (!hasPane()) {
      location.href = pageOf(sample);
    } else {
      let frame = pane.querySelector("iframe");
      if (!frame) { frame = document.createElement("iframe"); frame.title = "the dialogue"; pane.replaceChildren(frame); }
      frame.src = pageOf(sample);
    }
  }

  // filters and the open dialogue are in the address, so that a link to them can be shared and a reload keeps them
  function saveToAddress() {
    const params = new URLSearchParams();
    if (cellKey !== null) params.set("cell", cellKey);
    for (const [name, control] of Object.entries(controls)) if (control.value && control.value !== control.dataset.usual) params.set(name, control.value);
    if (chosen >= 0 && matching[chosen]) params.set("open", matching[chosen].sample.k);
    try { history.replaceState(null, "", "#" + params); } catch { /* some browsers refuse this for files */ }
  }
  function readAddress() {
    const params = new URLSearchParams(location.hash.slice(1));
    const cell = data.cells.cells[params.get("cell")];
    cellKey = cell ? params.get("cell") : null;
    if (cell) chooseCell(cell);
    for (const [name, control] of Object.entries(controls)) if (params.has(name)) control.value = params.get(name);
    return params.get("open");
  }

  // a cell's run, and its metric and turn, take the place of whatever filters are set
  function chooseCell(cell) {
    for (const control of Object.values(controls)) control.value = control.dataset.usual || "";
    for (const [name, value] of Object.entries({ run: String(cell.r), metric: cell.m, turn: cell.t, sort: cell.o })) if (controls[name] && value) controls[name].value = value;
    if (data.single) behind.scrollIntoView();
  }
  behind.lastChild.addEventListener("click", () => {
    cellKey = null;
    for (const name of ["metric", "turn"]) controls[name].value = controls[name].dataset.usual;
    filter();
  });

  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
    if (event.key === "Escape") { if (document.activeElement === controls.search) { controls.search.value = ""; filter(); } document.activeElement.blur(); box.focus(); }
    if (typing || event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); controls.search.focus(); }
    if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); open(Math.min(chosen + 1, matching.length - 1)); }
    if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); open(Math.max(chosen - 1, 0)); }
  });
  addEventListener("message", (event) => {
    const frame = pane.querySelector("iframe");
    if (frame && event.source === frame.contentWindow) { if (event.data === "weft:next") open(Math.min(chosen + 1, matching.length - 1)); if (event.data === "weft:previous") open(Math.max(chosen - 1, 0)); }
  });
  box.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  addEventListener("resize", draw);
  addEventListener("hashchange", () => { readAddress(); filter(); });
  let waiting;
  for (const control of Object.values(controls)) control.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, control.tagName === "INPUT" ? 120 : 0); });

  const first = readAddress();
  filter();
  if (first !== null) (hasPane() ? open : mark)(matching.findIndex((one) => one.sample.k === first)); // on a phone, Back must not lead forward again

  // add filter options that appear while a run goes on
  function addOptions() {
    const found = { turn: new Set(), outcome: new Set() };
    for (const sample of data.samples) {
      for (const [name, value] of Object.entries(sample.g)) (found["group:" + name] ||= new Set()).add(value);
      for (const run of sample.r) for (const turn of run) { found.turn.add(String(turn.t)); found.outcome.add(turn.o); }
    }
    for (const [name, values] of Object.entries(found)) {
      if (!controls[name]) continue;
      const there = new Set([...controls[name].options].map((one) => one.value));
      for (const value of [...values].sort()) if (!there.has(value)) controls[name].add(new Option(value, value));
    }
  }

  // served by `weft view`: ask for news while the run goes on
  if ("live" in document.body.dataset) {
    let stamp = data.stamp;
    setInterval(async () => {
      try {
        const news = await (await fetch("list.json?since=" + encodeURIComponent(stamp))).json();
        if (news.samples) { data = news; stamp = news.stamp; addOptions(); filter(); }
      } catch { /* the server has stopped: keep what is shown */ }
    }, 2000);
  }
})();
