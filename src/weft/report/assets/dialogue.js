"use strict";
// A dialogue's page: j, k and its links go on in the list around it, or to the neighbour where there is none.
(() => {
  const inside = parent !== window;
  const go = (way, event) => {
    if (inside) { event.preventDefault(); parent.postMessage("weft:" + way, "*"); return; }
    const link = document.querySelector("a." + way);
    if (event.type === "keydown" && link) location.href = link.href;
  };
  addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "j") go("next", event);
    if (event.key === "k") go("before", event);
  });
  for (const way of ["next", "before"]) for (const link of document.querySelectorAll("a." + way)) link.addEventListener("click", (event) => go(way, event));
  if (inside) for (const link of document.querySelectorAll("a.all")) link.hidden = true;
})();
