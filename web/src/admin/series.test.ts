import assert from "node:assert/strict";
import { test } from "node:test";
import { csv, seriesOf, stacked, type Told, type Used } from "./series.ts";

function used(dollars: number, more: Partial<Used> = {}): Used {
  return { calls: 1, input_tokens: 10, output_tokens: 2, cache_read_tokens: 5, cache_write_tokens: 0, cached_share: 0.5, dollars, ...more };
}
function told(...groups: [string, number[]][]): Told {
  const days = [0, 1].map((at) => ({ day: `2026-01-0${at + 5}`, ...used(groups.reduce((sum, [, values]) => sum + values[at]!, 0) + 1) }));
  return {
    days,
    total: used(9),
    groups: groups.map(([name, values]) => ({ key: name, name, ...used(1), days: values.map((value, at) => ({ day: `2026-01-0${at + 5}`, ...used(value) })) })),
  };
}

test("what is not told apart is drawn as one", () => {
  assert.deepEqual(seriesOf(told(), "dollars"), [{ name: "All agents", values: [1, 1] }]);
  const drawn = seriesOf(told(["Ada", [2, 0]], ["Bo", [0, 3]]), "dollars");
  assert.deepEqual(drawn, [
    { name: "Ada", values: [2, 0] },
    { name: "Bo", values: [0, 3] },
    { name: "Others", values: [1, 1] },
  ]);
  assert.deepEqual(seriesOf(told(["Ada", [2, 0]], ["Bo", [0, 3]]), "dollars", 1).at(-1), { name: "Others", values: [1, 4] });
});

test("each stands on those before it", () => {
  assert.deepEqual(stacked([{ name: "a", values: [1, 2] }, { name: "b", values: [3, 0] }]), [[1, 2], [4, 2]]);
});

test("a table for a spreadsheet holds no formula and keeps its columns", () => {
  const lines = csv(told(['=Ada, "the first"', [0.5, 0]]), "agent").split("\r\n");
  assert.equal(lines[0], "day,agent,calls,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,dollars");
  assert.equal(lines[1], `2026-01-05,"'=Ada, ""the first""",1,10,2,5,0,0.5`);
  assert.equal(csv(told(), "day").split("\r\n").length, 4);
});
