// Opens the recording and starts the page, or says why it cannot.

import { blocksOfDocument, DamagedPage } from "./decode.js";
import { byId, el } from "./dom.js";
import { clean } from "./names.js";
import { Recording } from "./model.js";
import { parseState } from "./state.js";
import { View } from "./view.js";
import { fillWarnings } from "./bar.js";
import { numbersOf } from "./numbers.js";
import { App } from "./app.js";

/**
 * Shows a sentence instead of a blank page.
 * @param {unknown} error
 */
function showFailure(error) {
  const why = error instanceof Error ? error.message : String(error);
  const place = byId("opening");
  place.hidden = false;
  place.replaceChildren(el("strong", {}, "This page cannot be shown: "), clean(why, 300),
    ". Make it again with rep html, or open it in a newer browser.");
  byId("page").hidden = true;
}

/** Fills the choices that depend on the recording. @param {Recording} recording */
function fillChoices({ meta }) {
  meta.events.forEach((one, i) => {
    byId("event").append(el("option", { value: String(i) }, clean(one.name, 60)));
    if (one.label === undefined) return;
    const button = el("button", { type: "button" }, clean(one.label, 60));
    button.dataset["event"] = String(i);
    byId("time-choice").append(button);
  });
  const labelled = byId("time-choice").childElementCount;
  byId("time-choice").hidden = labelled < 2;
  byId("event-choice").hidden = meta.events.length < 2 || labelled === meta.events.length;
  // Profiles have no times.
  byId("timeline").hidden = meta.steps < 2;
  byId("tab-chart").hidden = meta.steps < 2;
  if (meta.cpus > 0) return;
  for (const one of document.querySelectorAll("option[value=cpu]")) one.remove();
}

/** Opens the page. */
async function start() {
  try {
    const recording = await Recording.open(blocksOfDocument());
    const { meta } = recording;
    if (meta.events.length === 0) throw new DamagedPage("the recording has no samples");
    const limits = {
      events: meta.events.length, sides: meta.sides.length, steps: meta.steps, names: meta.names,
      groups: Math.max(meta.commands, meta.threads, meta.cpus + 1),
    };
    const state = parseState(location.hash.slice(1), limits);
    const view = new View(recording, state, await recording.event(state.event));
    byId("page").hidden = false;
    byId("opening").hidden = true;
    fillChoices(recording);
    const app = new App(view, limits, showFailure);
    app.searchField.value = state.search;
    fillWarnings(view, () => app.tab("recording"));
    app.render();
    const recrep = numbersOf(view, (act) => app.change(act, { measure: true, series: true }));
    Object.defineProperty(globalThis, "recrep", { value: recrep });
    document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
  } catch (error) {
    showFailure(error);
  }
}

start();
