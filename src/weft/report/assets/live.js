"use strict";
// Pages of `weft view` that ask for news every two seconds. News is set as text, never as markup.
(() => {
  const lost = document.getElementById("lost"), fresh = document.getElementById("fresh");
  const update = async () => {
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
  setInterval(() => update().then(() => { if (lost) lost.hidden = true; }, () => { if (lost) lost.hidden = false; }), 2000);
})();
