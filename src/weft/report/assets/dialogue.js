"use strict";
// A dialogue's page: j, k and the links open the next or previous dialogue, in the list if the page is inside one.
(() => {
  const inside = parent !== window;
  const go = (direction, event) => {
    if (inside) { event.preventDefault(); parent.postMessage("weft:" + direction, "*"); return; }
    const link = document.querySelector("a." + direction);
    if (event.type === "keydown" && link) location.href = link.href;
  };
  addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "j") go("next", event);
    if (event.key === "k") go("previous", event);
  });
  for (const direction of ["next", "previous"]) for (const link of document.querySelectorAll("a." + direction)) link.addEventListener("click", (event) => go(direction, event));
  if (inside) for (const link of document.querySelectorAll("a.all")) link.hidden = true;
})();
