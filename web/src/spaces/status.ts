/** What the agents in a space are doing, in one line. Pure. */
import type { Member } from "../denizen/api.ts";
import type { Presence, SpaceState, Writing } from "../denizen/store.ts";

/** Tools that are no news: everyone sees the message. */
const SPEAKING = new Set(["send_message", "reply"]);

export function statusWords(space: SpaceState, presence: Record<string, Presence>, writing: Writing[]): { words: string; busy: boolean } {
  const agents = space.info.members.filter((each) => each.kind === "agent");
  const alive = agents.filter((each) => presence[each.id]?.status === "alive");
  const paused = agents.filter((each) => presence[each.id]?.status === "paused");
  const said: string[] = [];
  const thinking: Member[] = [];
  for (const each of alive) {
    const doing = presence[each.id]?.doing;
    if (writing.some((one) => one.agent === each.id && one.space === space.info.id)) said.push(`${each.name} is writing`);
    else if (doing && !SPEAKING.has(doing)) said.push(`${each.name} is using ${doing}`);
    else thinking.push(each);
  }
  if (thinking.length) said.push(`${names(thinking)} ${thinking.length > 1 ? "are" : "is"} thinking`);
  if (paused.length) said.push(`${names(paused)} ${paused.length > 1 ? "wait" : "waits"} for an answer`);
  if (said.length) return { words: said.join(" · "), busy: alive.length > 0 };
  const quiet = agents.filter((each) => space.passed[each.id] === space.info.last_seq && space.info.last_seq > 0);
  return { words: quiet.length ? `${names(quiet)} read this and had nothing to say` : "", busy: false };
}

/** "Ada", "Ada and Bo", "Ada, Bo and 3 others". */
export function names(all: { name: string }[]): string {
  const [first, second, ...rest] = all.map((each) => each.name);
  if (second === undefined) return first ?? "";
  if (rest.length === 0) return `${first} and ${second}`;
  return `${first}, ${second} and ${rest.length === 1 ? rest[0] : `${rest.length} others`}`;
}
