import assert from "node:assert/strict";
import { test } from "node:test";
import { cost, costOf } from "./amounts.ts";

test("a price that is unknown is said to be so, and is not $0.00", () => {
  assert.match(cost({ dollars: 1.31, unpriced_calls: 0 }), /^\D*1\.31$/);
  assert.match(cost({ dollars: 1.31, unpriced_calls: 2 }), /^more than \D*1\.31$/);
  assert.equal(cost({ dollars: 0, unpriced_calls: 2 }), "cost unknown");
  assert.match(cost({ dollars: 0 }), /^\D*0\.00$/);
  assert.match(costOf({ dollars: 0, unpriced_calls: 2 }, 5), /^cost unknown, limit \D*5\.00$/);
  assert.match(costOf({ dollars: 1.31 }, 5), /^\D*1\.31 of \D*5\.00$/);
});
