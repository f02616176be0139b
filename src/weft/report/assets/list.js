"use strict";
// The list of dialogues: filters, worst first, only the rows in view exist. Text is set as text, never as markup.
(() => {
  const HEIGHT = 56;
  const byId = (id) => document.getElementById(id);
  let data = JSON.parse(byId("data").textContent);
  const box = byId("rows"), spacer = byId("spacer"), count = byId("count"), versus = byId("versus"), pane = byId("pane");
  const controls = {};
  for (const one of document.querySelectorAll("[data-filter]")) controls[one.dataset.filter] = one;
  let kept = [], chosen = -1, chosenKey = null, drawn = new Map();
  const pictures = byId("pictures") ? JSON.parse(byId("pictures").textContent) : {};

  // A sample is {i, k: what its page is called, id, g: {group: value}, s: [run: share], d: [run: difference to the first],
  // r: [run: [turn: {t: number, o: outcome, s: share, d: difference to the first, m: {metric: share or null}}]]}
  const figure = (share, sign) => {
    const text = (data.full * share).toFixed(data.digits), plain = Number(text) === 0 ? text.replace("-", "") : text;
    return (sign && !plain.startsWith("-") ? "+" : "") + plain;
  };
  const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : null);
  const scores = (turn, metric) => Object.entries(turn.m).filter(([name, value]) => value !== null && (!metric || name === metric)).map(([, value]) => value);
  const turnsOf = (sample, run, pick) => (sample.r[run] || []).filter((turn) => pick.turn === "" || turn.t === Number(pick.turn));
  // without a metric, the benchmark's own main number of the dialogue or the turn; with one, its mean
  const scoreOf = (sample, run, pick) => {
    if (!pick.metric && pick.turn === "") return sample.s[run] ?? null;
    const turns = turnsOf(sample, run, pick);
    return pick.metric ? mean(turns.flatMap((turn) => scores(turn, pick.metric))) : mean(turns.map((turn) => turn.s).filter((value) => value !== null));
  };

  // to the first run, or of the first to the second; over what both have scored
  const rivalOf = (run) => (data.runs.length < 2 ? null : run === 0 ? 1 : 0);
  const gapOf = (sample, run, pick) => {
    const rival = rivalOf(run), late = run || rival;
    if (rival === null) return null;
    let gap;
    if (pick.metric) {
      const there = new Map(turnsOf(sample, 0, pick).map((turn) => [turn.t, turn.m[pick.metric] ?? null]));
      gap = mean(turnsOf(sample, late, pick).map((turn) => [turn.m[pick.metric] ?? null, there.get(turn.t) ?? null]).filter(([a, b]) => a !== null && b !== null).map(([a, b]) => a - b));
    } else gap = pick.turn === "" ? sample.d[late] ?? null : mean(turnsOf(sample, late, pick).map((turn) => turn.d).filter((value) => value !== null));
    return gap === null ? null : run === 0 ? -gap : gap;
  };

  function picked() {
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
    const pick = picked(), wanted = pick.search.trim().toLowerCase();
    kept = [];
    for (const sample of data.samples) {
      if (Object.entries(pick.groups).some(([name, value]) => sample.g[name] !== value)) continue;
      if (wanted && !sample.id.toLowerCase().includes(wanted) && !sample.x.toLowerCase().includes(wanted)) continue;
      const turns = turnsOf(sample, pick.run, pick);
      if (pick.turn !== "" && !turns.length) continue;
      if (pick.metric && !turns.some((turn) => pick.metric in turn.m)) continue;
      if (pick.outcome === "unscored") { if (!turns.some((turn) => Object.entries(turn.m).some(([name, value]) => value === null && (!pick.metric || name === pick.metric)))) continue; }
      else if (pick.outcome && !turns.some((turn) => turn.o === pick.outcome)) continue;
      const score = scoreOf(sample, pick.run, pick);
      if (pick.most < 1 && (score === null || score > pick.most + 1e-9)) continue;
      kept.push({ sample, score, gap: gapOf(sample, pick.run, pick) });
    }
    const last = (value) => (value === null ? Infinity : value);
    if (pick.sort === "worst") kept.sort((a, b) => last(a.score) - last(b.score) || a.sample.i - b.sample.i);
    if (pick.sort === "best") kept.sort((a, b) => (a.score === null) - (b.score === null) || b.score - a.score || a.sample.i - b.sample.i);
    if (pick.sort === "gap") kept.sort((a, b) => Math.abs(b.gap || 0) - Math.abs(a.gap || 0) || a.sample.i - b.sample.i);
    for (const row of drawn.values()) row.remove();
    drawn.clear();
    spacer.style.height = kept.length * HEIGHT + "px";
    count.textContent = kept.length + " of " + data.samples.length + " dialogues";
    const rival = rivalOf(pick.run);
    versus.hidden = rival === null;
    if (rival !== null) versus.replaceChildren("in brackets: against ", element("bdi", "", data.runs[rival]), ", over what both have scored");
    chosen = kept.findIndex((one) => one.sample.k === chosenKey);
    remember();
    draw();
  }

  function draw() {
    const from = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - 6), to = Math.min(kept.length, Math.ceil((box.scrollTop + box.clientHeight) / HEIGHT) + 6);
    for (const [at, row] of drawn) if (at < from || at >= to) { row.remove(); drawn.delete(at); }
    for (let at = from; at < to; at++) if (!drawn.has(at)) { const row = rowOf(at); drawn.set(at, row); spacer.append(row); }
  }

  const element = (name, kind, text) => { const made = document.createElement(name); made.className = kind; if (text !== undefined) made.textContent = text; return made; };
  const shade = (share) => (share === null ? "sx" : "s" + Math.max(0, Math.min(10, Math.round(share * 10))));

  function rowOf(at) {
    const { sample, score, gap } = kept[at], pick = picked();
    const row = element("a", "row");
    row.href = pageOf(sample);
    row.style.top = at * HEIGHT + "px";
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", at === chosen ? "true" : "false");
    const first = element("span", "first"), second = element("span", "second"), cells = element("span", "cells");
    first.append(element("span", "id", sample.id), element("span", "score", score === null ? "unscored" : figure(score)));
    if (gap !== null) { const against = element("span", "gap", "(" + figure(gap, true) + ")"); against.title = figure(gap, true) + " against " + data.runs[rivalOf(pick.run)]; first.lastChild.append(" ", against); }
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
  const beside = () => getComputedStyle(pane).display !== "none"; // on a narrow screen there is no room beside the list

  function mark(at) {
    if (at < 0 || at >= kept.length) return false;
    chosen = at;
    chosenKey = kept[at].sample.k;
    for (const [place, row] of drawn) row.setAttribute("aria-selected", place === at ? "true" : "false");
    const top = at * HEIGHT;
    if (top < box.scrollTop || top + HEIGHT > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 2);
    remember();
    return true;
  }

  function open(at) {
    if (!mark(at)) return;
    const sample = kept[at].sample;
    if (data.single) {
      const shown = byId("d" + sample.k).content.cloneNode(true);
      for (const one of shown.querySelectorAll("img[data-picture]")) one.src = pictures[one.dataset.picture];
      pane.replaceChildren(shown);
      pane.scrollTop = 0;
      if (!beside()) { pane.style.display = "block"; pane.scrollIntoView(); }
    } else if (!beside()) {
      location.href = pageOf(sample);
    } else {
      let frame = pane.querySelector("iframe");
      if (!frame) { frame = document.createElement("iframe"); frame.title = "the dialogue"; pane.replaceChildren(frame); }
      frame.src = pageOf(sample);
    }
  }

  // the choice is in the address, so that it can be sent to somebody and survives a reload
  function remember() {
    const said = new URLSearchParams();
    for (const [name, control] of Object.entries(controls)) if (control.value && control.value !== control.dataset.usual) said.set(name, control.value);
    if (chosen >= 0 && kept[chosen]) said.set("open", kept[chosen].sample.k);
    try { history.replaceState(null, "", "#" + said); } catch { /* some browsers refuse this for files */ }
  }
  function recall() {
    const said = new URLSearchParams(location.hash.slice(1));
    for (const [name, control] of Object.entries(controls)) if (said.has(name)) control.value = said.get(name);
    return said.get("open");
  }

  document.addEventListener("keydown", (event) => {
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
    if (event.key === "Escape") { if (document.activeElement === controls.search) { controls.search.value = ""; filter(); } document.activeElement.blur(); box.focus(); }
    if (typing || event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); controls.search.focus(); }
    if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); open(Math.min(chosen + 1, kept.length - 1)); }
    if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); open(Math.max(chosen - 1, 0)); }
  });
  addEventListener("message", (event) => {
    const frame = pane.querySelector("iframe");
    if (frame && event.source === frame.contentWindow) { if (event.data === "weft:next") open(Math.min(chosen + 1, kept.length - 1)); if (event.data === "weft:before") open(Math.max(chosen - 1, 0)); }
  });
  box.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  addEventListener("resize", draw);
  addEventListener("hashchange", () => { recall(); filter(); });
  let waiting;
  for (const control of Object.values(controls)) control.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, control.tagName === "INPUT" ? 120 : 0); });

  const first = recall();
  filter();
  if (first !== null) (beside() ? open : mark)(kept.findIndex((one) => one.sample.k === first)); // on a phone, Back must not lead forward again

  // what a run brings in while it goes on can be chosen too
  function offer() {
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

  // served by `weft view`: look again while the run goes on
  if ("live" in document.body.dataset) {
    let stamp = data.stamp;
    setInterval(async () => {
      try {
        const said = await (await fetch("list.json?since=" + encodeURIComponent(stamp))).json();
        if (said.samples) { data = said; stamp = said.stamp; offer(); filter(); }
      } catch { /* the server is gone; what is here stays */ }
    }, 2000);
  }
})();
