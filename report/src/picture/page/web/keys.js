// Keys of the whole page; graphs, table and brush have their own.

import { byId } from "./dom.js";
import { TABS } from "./state.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./state.js").Tab} Tab */

function helpDialog() {
  return /** @type {HTMLDialogElement} */ (byId("help"));
}

/** Shows the help, or closes it. */
export function toggleHelp() {
  if (helpDialog().open) helpDialog().close();
  else helpDialog().showModal();
}

/**
 * @param {App} app
 * @param {KeyboardEvent} event
 */
export function pageKey(app, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || helpDialog().open) return;
  const { target, key } = event;
  const inField = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
  if (key === "Escape") {
    takeBack(app, inField);
    return;
  }
  const tab = TABS[Number(key) - 1];
  if (inField) return;
  if (key === "/") app.searchField.focus();
  else if (key === "n") app.nextMatch();
  else if (key === "c") app.showCallers(app.flame.cursor?.frame ?? app.state.selected);
  else if (key === "i") app.invert();
  else if (key === "z") app.zoomTime(true);
  else if (key === "Z") app.zoomTime(false);
  else if (key === "?") toggleHelp();
  else if (tab !== undefined) app.tab(tab);
  else return;
  event.preventDefault();
}

/**
 * Takes back the latest: search, comparison, filter, zoom or selection.
 * @param {App} app
 * @param {boolean} inField
 */
function takeBack(app, inField) {
  const { state } = app;
  const last = state.filters[state.filters.length - 1];
  if (inField) app.searchField.blur();
  if (state.search !== "" && (inField || last === undefined)) {
    app.searchField.value = "";
    app.search("");
  } else if (inField) return;
  else if (state.compare) app.compare();
  else if (last !== undefined) app.removeFilter(last);
  else if (state.window !== null) app.zoomTime(false);
  else if (state.zoom.length > 0) app.zoom([]);
  else if (state.selected >= 0 || app.panel.stay !== null) app.select(-1);
}

/**
 * Moves between the tabs.
 * @param {App} app
 * @param {KeyboardEvent} event
 */
export function tabKey(app, event) {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (by === 0) return;
  event.preventDefault();
  const next = TABS[(TABS.indexOf(app.state.tab) + by + TABS.length) % TABS.length];
  app.tab(next);
  byId("tab-" + next).focus();
}
