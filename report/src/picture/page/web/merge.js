// Boxes of a graph, merged lazily: downwards (who is called) over one node or many, or upwards (who
// calls). A box knows its nodes; what it weighs comes from the totals of the filter at hand.

/** @typedef {import("./model.js").Tree} Tree */
/** @typedef {import("./filter.js").Totals} Totals */

/** One box: nodes of one frame, in a slice of a list that siblings share. */
export class Box {
  /**
   * @param {number} frame −1: everything.
   * @param {Box | null} parent
   * @param {Int32Array} nodes
   * @param {Int32Array} origins Nodes whose weight counts: `nodes` downwards, leaves upwards.
   * @param {number} from
   * @param {number} to
   * @param {"self" | "total"} uses Which of the totals count.
   */
  constructor(frame, parent, nodes, origins, from, to, uses) {
    this.frame = frame;
    this.parent = parent;
    this.depth = depthBelow(parent);
    this.nodes = nodes;
    this.origins = origins;
    this.from = from;
    this.to = to;
    this.uses = uses;
    /** @type {Box[] | null} */
    this.children = null;
    /** Weight without any filter: orders siblings. */
    this.whole = 0;
    /** Weight under the totals of a version. */
    this.weight = 0;
    this.version = -1;
  }
}

/**
 * @param {Box | null} box
 * @returns {number}
 */
function depthBelow(box) {
  return box === null ? 0 : box.depth + 1;
}

/** Boxes over one tree in one direction. */
export class Merge {
  /**
   * @param {Tree} tree
   * @param {Totals} whole Totals without any filter.
   * @param {"down" | "up"} direction
   * @param {number} frame −1: everything.
   * @param {Int32Array} nodes Nodes of the root.
   */
  constructor(tree, whole, direction, frame, nodes) {
    this.tree = tree;
    this.whole = whole;
    this.direction = direction;
    this.root = new Box(frame, null, nodes, nodes, 0, nodes.length, "total");
  }

  /**
   * Returns the graph of a whole tree, callers on top; upwards: functions by self time on top, and
   * their callers below them.
   * @param {Tree} tree
   * @param {Totals} whole
   * @param {"down" | "up"} direction
   */
  static all(tree, whole, direction) {
    return new Merge(tree, whole, direction, -1, Int32Array.of(0));
  }

  /**
   * Returns what a function calls (`down`) or who calls it (`up`), each sample counted once.
   * @param {Tree} tree
   * @param {Totals} whole
   * @param {number} frame
   * @param {"down" | "up"} direction
   */
  static through(tree, whole, frame, direction) {
    /** @type {number[]} */
    const found = [];
    for (let node = 1; node < tree.size; node++) {
      if (tree.frame[node] === frame && tree.outermost[node] === 1) found.push(node);
    }
    return new Merge(tree, whole, direction, frame, Int32Array.from(found));
  }

  /**
   * @param {Box} box
   * @param {Float64Array} values
   * @returns {number}
   */
  sum(box, values) {
    const { origins, to } = box;
    let weight = box.from < to ? values[origins[box.from]] : 0;
    for (let i = box.from + 1; i < to; i++) weight += values[origins[i]];
    return weight;
  }

  /**
   * Returns what a box weighs under a filter, and remembers it.
   * @param {Box} box
   * @param {Totals} totals
   * @returns {number}
   */
  weigh(box, totals) {
    if (box.version !== totals.version) {
      box.weight = this.sum(box, totals[box.uses]);
      box.version = totals.version;
    }
    return box.weight;
  }

  /**
   * Returns a box's weight and samples under any totals.
   * @param {Box} box
   * @param {Totals} totals
   */
  figures(box, totals) {
    const isSelf = box.uses === "self";
    return {
      weight: this.sum(box, totals[box.uses]),
      samples: this.sum(box, isSelf ? totals.selfSamples : totals.samples),
      all: totals.all,
      allSamples: totals.allSamples,
    };
  }

  /**
   * Returns a box's children, heaviest of the unfiltered recording first, so that they keep their
   * places while the filter changes.
   * @param {Box} box
   * @returns {Box[]}
   */
  childrenOf(box) {
    if (box.children === null) {
      const children = this.expand(box);
      for (const child of children) child.whole = this.sum(child, this.whole[child.uses]);
      box.children = children.sort((a, b) => b.whole - a.whole || a.frame - b.frame);
    }
    return box.children;
  }

  /**
   * @param {Box} box
   * @returns {Box[]}
   */
  expand(box) {
    const { end, parent, start, groups } = this.tree;
    const first = box.nodes[box.from];
    const isAll = box.frame < 0;
    const isGroup = groups > 0 && parent[first] === 0;
    /** @type {number[]} */
    const nodes = [];
    if (this.direction === "down" || (isAll && groups > 0)) {
      for (let i = box.from; i < box.to; i++) {
        const node = box.nodes[i];
        for (let child = node + 1; child < end[node]; child = end[child]) {
          nodes.push(child);
        }
      }
      return this.byFrame(box, nodes, nodes, "total");
    }
    if (isAll || isGroup) {
      for (let node = first + 1; node < end[first]; node++) {
        if (start[node + 1] > start[node]) nodes.push(node);
      }
      return this.byFrame(box, nodes, nodes, "self");
    }
    /** @type {number[]} */
    const origins = [];
    for (let i = box.from; i < box.to; i++) {
      const up = parent[box.nodes[i]];
      if (up <= 0 || (groups > 0 && parent[up] === 0)) continue;
      nodes.push(up);
      origins.push(box.origins[i]);
    }
    return this.byFrame(box, nodes, origins, box.uses);
  }

  /**
   * Returns one box per frame of some nodes: a counting sort by frame.
   * @param {Box} parent
   * @param {number[]} nodes
   * @param {number[]} origins
   * @param {"self" | "total"} uses
   * @returns {Box[]}
   */
  byFrame(parent, nodes, origins, uses) {
    const { frame } = this.tree;
    const isOneNode = this.direction === "down" && parent.to - parent.from === 1;
    if (isOneNode) {
      // Children of one node have different frames.
      const list = Int32Array.from(nodes);
      return nodes.map((node, i) => new Box(frame[node], parent, list, list, i, i + 1, uses));
    }
    /** @type {Map<number, number>} Frame to number of nodes, then to the place of its next one. */
    const places = new Map();
    for (const node of nodes) {
      const of = frame[node];
      places.set(of, (places.get(of) ?? 0) + 1);
    }
    const sortedNodes = new Int32Array(nodes.length);
    const sortedOrigins = nodes === origins ? sortedNodes : new Int32Array(nodes.length);
    /** @type {Box[]} */
    const boxes = [];
    let next = 0;
    for (const [of, count] of places) {
      boxes.push(new Box(of, parent, sortedNodes, sortedOrigins, next, next + count, uses));
      places.set(of, next);
      next += count;
    }
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i];
      const of = frame[node];
      const at = places.get(of) ?? 0;
      places.set(of, at + 1);
      sortedNodes[at] = node;
      sortedOrigins[at] = origins[i];
    }
    return boxes;
  }
}
