/** What the agents in a space are doing, and who will hear what is said, in one line. Pure. */
import type { Member, Message } from "../denizen/api.ts";
import type { Presence, SpaceState, Writing } from "../denizen/store.ts";

/** Tools that are no news: everyone sees the message. */
const SPEAKING = new Set(["send_message", "reply"]);

export function statusWords(space: SpaceState, presence: Record<string, Presence>, writing: Writing[], typing?: string): { words: string; busy: boolean } {
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
  if (typing !== undefined) said.push(`${typing} is typing`);
  if (paused.length) said.push(`${names(paused)} ${paused.length > 1 ? "wait" : "waits"} for an answer`);
  if (said.length) return { words: said.join(" · "), busy: alive.length > 0 };
  const last = space.window?.at(-1);
  if (!last || last.seq !== space.info.last_seq || last.author.kind !== "human") return { words: "", busy: false };
  // Who owes an answer has a notice of its own.
  const told = new Set(space.info.statuses.map((each) => each.agent_id));
  const quiet = agents.filter((each) => !told.has(each.id) && (space.passed[each.id] ?? 0) >= last.seq && hears(each, last));
  return { words: quiet.length ? `${names(quiet)} read this and did not reply` : "", busy: false };
}

function hears(agent: Member, message: Message): boolean {
  return agent.attention === "all" || (agent.attention === "mentions" && message.mentions.includes(agent.handle));
}

/** What someone may do who is the first to speak among these agents. */
export function invitation(agents: Member[]): string {
  if (agents.length === 0) return "Say hello: everyone in this space sees it. Add people and agents under Members.";
  const hearing = agents.filter((each) => each.attention === "all");
  const hello = hearing.length ? `Say hello: ${names(hearing)} ${hearing.length > 1 ? "hear" : "hears"} it.` : "Say hello.";
  const one = agents.find((each) => each.attention !== "none");
  if (one === undefined || (agents.length === 1 && hearing.length === 1)) return hello;
  return `${hello} Use @${one.handle} to address ${agents.length > 1 ? "one of them" : one.name}.`;
}

/** "Ada", "Ada and Bo", "Ada, Bo and 3 others". */
export function names(all: { name: string }[]): string {
  const [first, second, ...rest] = all.map((each) => each.name);
  if (second === undefined) return first ?? "";
  if (rest.length === 0) return `${first} and ${second}`;
  return `${first}, ${second} and ${rest.length === 1 ? rest[0] : `${rest.length} others`}`;
}
