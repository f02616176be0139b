"use strict";
// Pages of `weft view` that look again every other second. What comes is set as text.
(() => {
  const lost = document.getElementById("lost"), fresh = document.getElementById("fresh");
  const look = async () => {
    const rows = document.querySelector("[data-runs]");
    if (rows) {
      for (const run of await (await fetch("runs.json" + location.search)).json()) {
        const row = document.getElementById("run-" + run.id);
        if (!row) { location.reload(); return; }
        row.querySelector("[data-progress]").textContent = run.progress;
        row.querySelector("[data-state]").textContent = run.state;
      }
    }
    if (fresh) fresh.hidden = (await (await fetch("stamp.json")).json()).stamp === fresh.dataset.stamp;
  };
  setInterval(() => look().then(() => { if (lost) lost.hidden = true; }, () => { if (lost) lost.hidden = false; }), 2000);
})();
