// What tests read from the page: `recrep` in its console. Reading changes nothing but the state
// that `show` sets, as a user would.

import { formatState } from "./state.js";
import { GROUP_KINDS } from "./group.js";

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
          self_period: sums.self[frame] * view.event.unit,
          total_period: sums.total[frame] * view.event.unit,
        });
      }
      return out;
    },

    /**
     * Lanes of a kind with their samples and period, of the side shown, under the filter at hand.
     * @param {"command" | "process" | "thread" | "cpu"} kind
     */
    lanes: (kind) => {
      const { tree } = view.event;
      const groups = view.groups(kind);
      const out = groups.keys.map((key, i) => ({ key, label: groups.labels[i], samples: 0, period: 0 }));
      const masks = view.masks;
      for (let node = 1; node < tree.size; node++) {
        if (view.nodes !== null && view.nodes[node] === 0) continue;
        for (let i = tree.start[node]; i < tree.start[node + 1]; i++) {
          const cell = tree.cell[i];
          const lane = out[groups.ofCell[cell]];
          if (lane === undefined || masks[cell] !== 1) continue;
          lane.samples += tree.count[i];
          lane.period += (tree.weight?.[i] ?? tree.count[i] ?? 0) * view.event.unit;
        }
      }
      return out.filter((lane) => lane.samples > 0);
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
      if (wanted.lane && lane !== undefined) state.add({ kind: "lane", lane, key: wanted.lane.key });
      state.side = wanted.side ?? state.side;
      state.compare = wanted.compare ?? state.compare;
    }),
  });
}
