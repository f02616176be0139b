"use strict";
// Runs as they go on: progress is asked for every other second, and set as text.
setInterval(async () => {
  try {
    for (const run of await (await fetch("runs.json")).json()) {
      const row = document.getElementById("run-" + run.id);
      if (!row) { location.reload(); return; }
      row.querySelector("[data-progress]").textContent = run.progress;
      row.querySelector("[data-state]").textContent = run.state;
    }
  } catch { /* the server is gone */ }
}, 2000);
