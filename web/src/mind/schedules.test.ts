import assert from "node:assert/strict";
import { test } from "node:test";
import { cronFor, HERE, inPlainWords, weeklyOf } from "./schedules.ts";

test("a time on days of the week is read from a cron expression, however it says them", () => {
  for (const [cron, days, time] of [
    ["0 9 * * MON", [0], "09:00"],
    ["30 17 * * 1-5", [0, 1, 2, 3, 4], "17:30"],
    ["5 0 * * *", [0, 1, 2, 3, 4, 5, 6], "00:05"],
    ["0 8  * * sat,0", [5, 6], "08:00"],
    ["0 8 * * 7,2", [1, 6], "08:00"],
  ] as const) {
    assert.deepEqual(weeklyOf(cron), { days: [...days], time });
  }
  for (const cron of ["*/5 * * * *", "0 9 1 * *", "0 9 * 3 MON", "0 9,18 * * *", "0 25 * * *", "61 9 * * *", "0 9 * * MON#2", "0 9 * * FRI-MON", "0 9 * * L", "@daily"]) {
    assert.equal(weeklyOf(cron), null, cron);
  }
});

test("days and a time become a cron expression that says the same", () => {
  assert.equal(cronFor({ days: [0, 1, 2, 3, 4], time: "09:00" }), "0 9 * * MON-FRI");
  assert.equal(cronFor({ days: [0, 1, 2, 3, 4, 5, 6], time: "07:05" }), "5 7 * * *");
  for (let bits = 1; bits < 128; bits += 1) {
    const days = [0, 1, 2, 3, 4, 5, 6].filter((day) => (bits >> day) & 1);
    assert.deepEqual(weeklyOf(cronFor({ days, time: "22:30" })), { days, time: "22:30" });
  }
});

test("a schedule is told in plain words and in the language of the reader", () => {
  assert.equal(inPlainWords(`recurring, cron: 0 9 * * MON, ${HERE}`, "en-GB"), "every Monday at 09:00");
  assert.equal(inPlainWords("recurring, cron: 0 9 * * 1-5, Asia/Tokyo", "en-GB"), "Monday to Friday at 09:00 (Asia/Tokyo)");
  assert.equal(inPlainWords(`recurring, cron: 30 17 * * *, ${HERE}`, "en-US"), "every day at 05:30 PM");
  assert.equal(inPlainWords(`recurring, cron: 0 8 * * SAT,SUN,MON, ${HERE}`, "en-GB"), "every Monday, Saturday and Sunday at 08:00");
  for (const schedule of ["recurring, cron: 0 9 1 * *, UTC", "once, at 2026-01-05 09:00 UTC", "recurring, every 30 minutes, 08:00–22:00, UTC"]) {
    assert.equal(inPlainWords(schedule, "en-GB"), schedule);
  }
});
