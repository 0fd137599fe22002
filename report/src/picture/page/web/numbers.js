// What tests read from the page: `recrep` in its console. Reading changes nothing but the state
// that `show` sets, as a user would.

import { formatState } from "./state.js";
import { GROUP_KINDS } from "./group.js";
import { Columns, Lanes } from "./series.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./state.js").State} State */

/**
 * Returns the object for tests.
 * @param {View} view
 * @param {(act: (state: State) => void) => void} change Changes the state and shows it.
 */
export function numbersOf(view, change) {
  return Object.freeze({
    /** Metadata of the page, as it is stored. */
    meta: () => view.recording.meta,

    /** State of the view, as the address holds it. */
    state: () => formatState(view.state),

    /** Samples and period of what is shown, and of what it is compared with. */
    totals: () => ({
      samples: view.a.allSamples,
      period: view.a.all * view.event.unit,
      otherSamples: view.b?.allSamples ?? null,
      otherPeriod: view.b === null ? null : view.b.all * view.event.unit,
    }),

    /**
     * All functions with a sample under the filter at hand: name, module, samples and period of
     * self and total. `other`: of what is compared with.
     * @param {boolean} [other]
     */
    functions: (other = false) => {
      const sums = other ? view.otherSums : view.sums;
      const out = [];
      for (let frame = 0; sums !== null && frame < sums.samples.length; frame++) {
        if (sums.samples[frame] === 0) continue;
        out.push({
          name: view.recording.names[frame],
          module: view.recording.moduleName(frame),
          kind: view.recording.kind[frame],
          self_samples: sums.selfSamples[frame],
          total_samples: sums.samples[frame],
          self_period: Math.round(sums.self[frame] * view.event.unit),
          total_period: Math.round(sums.total[frame] * view.event.unit),
        });
      }
      return out;
    },

    /**
     * Lanes of a kind, of the side shown and under the filters of cells (time, lane, idle tasks):
     * key, label and period.
     * @param {import("./group.js").GroupKind} kind
     */
    lanes: (kind) => {
      const groups = view.groups(kind);
      const lanes = new Lanes(view.recording, view.event, groups, view.masks);
      return lanes.order.map((group) => ({
        key: groups.keys[group], label: groups.labels[group],
        period: Math.round(lanes.weight[group] * view.event.unit),
      }));
    },

    /**
     * What the lanes of a kind show in equal parts of the recording: where these begin in
     * nanoseconds since the first sample, and for each lane and activity the nanoseconds in each.
     * @param {import("./group.js").GroupKind} kind
     * @param {number} parts
     */
    courses: (kind, parts) => {
      const { recording, event, state } = view;
      const side = event.cellThread.map((thread) => (recording.threads.side[thread] === state.side ? 1 : 0));
      const lanes = new Lanes(recording, event, view.groups(kind), Uint8Array.from(side));
      const columns = new Columns(0, view.steps, parts, Infinity);
      const { step } = recording.meta;
      return {
        begins: Array.from({ length: columns.count + 1 }, (_, i) => columns.first(i) * step),
        lanes: lanes.order.map((group) => ({
          key: lanes.groups.keys[group],
          activities: lanes.courses(group, columns).map((course) =>
            Array.from(course, (weight) => Math.round(weight * event.unit))),
        })),
      };
    },

    /**
     * Sets filters: a range of time in seconds since the first sample, a lane, a side.
     * @param {{time?: [number, number] | null, lane?: {kind: string, key: number} | null,
     *   side?: number, compare?: boolean}} wanted
     */
    show: (wanted) => change((state) => {
      const { step, steps } = view.recording.meta;
      state.filters = state.filters.filter((one) => one.kind !== "time" && one.kind !== "lane");
      if (wanted.time) {
        const [from, to] = wanted.time.map((time) => Math.round((time * 1e9) / step));
        state.add({ kind: "time", from: Math.max(from ?? 0, 0), to: Math.min(to ?? steps, steps) });
      }
      const lane = GROUP_KINDS.find((kind) => kind === wanted.lane?.kind);
      if (wanted.lane && lane) state.add({ kind: "lane", lane, key: wanted.lane.key });
      state.side = wanted.side ?? state.side;
      state.compare = wanted.compare ?? state.compare;
    }),
  });
}
