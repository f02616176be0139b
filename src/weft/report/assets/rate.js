"use strict";
// A question's form by keys. Without it the form works all the same; nothing is sent but by the form.
(() => {
  const form = document.querySelector("form.rating"), keys = document.getElementById("keys"), large = document.getElementById("large");
  const back = document.querySelector("[data-back][href]");
  const fields = form ? [...form.querySelectorAll(".field")] : [];
  const images = [...document.querySelectorAll("[data-large]")];
  const inside = (field) => [...field.querySelectorAll("input[type=radio], input[type=number]")];
  const filled = (field) => inside(field).some((one) => one.checked || (one.type === "number" && one.value));
  let last = fields.find((field) => !filled(field)) || fields[0], at = 0, sent = false;

  const enter = (field, scroll) => {
    if (!field) return;
    last = field;
    const some = inside(field);
    (some.find((one) => one.checked) || some[0]).focus({ preventScroll: true });
    if (scroll) field.scrollIntoView({ block: "nearest" });
  };
  const mark = (field) => {
    const half = field.querySelector(".half input"), some = inside(field);
    if (half) {
      half.disabled = some.length > 0 && some[some.length - 1].checked;
      if (half.disabled) half.checked = false;
    }
  };
  const choose = (field, one) => {
    if (!one) return false;
    one.checked = true;
    one.focus({ preventScroll: true });
    mark(field);
    return true;
  };
  const typed = (field, key) => {
    const some = inside(field), kind = field.dataset.kind;
    const valued = (text) => some.find((one) => one.dataset.value === text);
    if (kind === "yes") return choose(field, key === "y" || key === "1" ? some[0] : key === "n" || key === "0" ? some[1] : null);
    if (kind === "scale") return choose(field, /^[0-9]$/.test(key) ? valued(key) : key === "x" ? valued("10") : null);
    if (kind === "choice" && /^[1-9]$/.test(key)) return choose(field, some[Number(key) - 1]);
    return false;
  };
  const show = (number) => {
    at = (number + images.length) % images.length;
    const image = document.createElement("img"), one = images[at].querySelector("img");
    image.src = images[at].href;
    image.alt = one.alt;
    image.className = one.className;
    large.replaceChildren(image);
    if (!large.open) large.showModal();
  };

  for (const field of fields) {
    mark(field);
    field.addEventListener("focusin", () => { last = field; });
    field.addEventListener("change", () => mark(field));
  }
  images.forEach((one, number) => one.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(number);
  }));
  if (large) large.addEventListener("click", () => large.close());
  if (keys) {
    document.getElementById("show-keys").addEventListener("click", () => keys.showModal());
    keys.querySelector("[data-close]").addEventListener("click", () => keys.close());
  }
  if (form) form.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
  });
  addEventListener("pageshow", () => { sent = false; });

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const key = event.key, here = document.activeElement;
    const writes = here && (here.tagName === "TEXTAREA" || here.type === "number");
    const stop = () => event.preventDefault();
    if (large && large.open) {
      if (key === "ArrowLeft" || key === "ArrowRight") { stop(); show(at + (key === "ArrowRight" ? 1 : -1)); }
      else if (key === "p" || key === "Enter") { stop(); large.close(); }
      return;
    }
    if (keys && keys.open) {
      if (key === "?") { stop(); keys.close(); }
      return;
    }
    if (key === "Enter" && form) {
      if (event.shiftKey || (here && (here.tagName === "A" || here.tagName === "SUMMARY" || here.tagName === "BUTTON"))) return;
      stop();
      form.requestSubmit();
      return;
    }
    if (key === "Escape" && writes) { stop(); enter(last, true); return; }
    if (key === "ArrowUp" || key === "ArrowDown") {
      if (here && here.tagName === "TEXTAREA" || !fields.length) return;
      stop();
      enter(fields[Math.min(fields.length - 1, Math.max(0, fields.indexOf(last) + (key === "ArrowDown" ? 1 : -1)))], true);
      return;
    }
    if (writes) return;
    if (key === "u" || key === "Backspace") { stop(); if (back) location.href = back.href; }
    else if (key === "?" && keys) { stop(); keys.showModal(); }
    else if (key === "p" && images.length) { stop(); show(0); }
    else if (key === "w" && last) {
      stop();
      const place = last.closest(".group") || form, why = place.querySelector(".why"), box = place.querySelector("textarea");
      if (why) why.open = true;
      if (box) box.focus();
    } else if ((key === "." || key === ",") && last) {
      const half = last.querySelector(".half input");
      if (half && !half.disabled) { stop(); half.checked = !half.checked; }
    } else if (last && typed(last, key)) stop();
  });
  enter(last, false);
})();
