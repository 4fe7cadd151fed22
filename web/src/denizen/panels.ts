/**
 * What a person was told of panels: rounds as they stand, and the texts that are still growing. Pure.
 *
 * The stream tells in order; an answer to a request may be older than what the stream has told meanwhile. So each round
 * remembers when it was last told, and an answer that was asked for before that does not change it.
 */
import type { Message, Reply, Round } from "./api.ts";
import type { PanelDelta, PanelReply } from "./events.ts";

/** What one voice has said so far. */
export interface Speaking {
  epoch: number;
  text: string;
  /** In code points: where the next piece begins. */
  length: number;
  thinking: string;
  thinkingLength: number;
}

export interface Told {
  round: Round;
  /** `told` of the panel when the stream last spoke of it; 0: it never did. */
  at: number;
}

export interface PanelState {
  rounds: Record<string, Told>;
  /** By `keyOf`. */
  speaking: Record<string, Speaking>;
  /** How often the stream spoke of this panel. */
  told: number;
  /** How often its settings or advisors became others. */
  changed: number;
}

export const NO_PANEL: PanelState = { rounds: {}, speaking: {}, told: 0, changed: 0 };

export function keyOf(round: string, advisor: string, part: string): string {
  return `${round} ${advisor} ${part}`;
}

/** The rounds in order: by turn, and within it by step. */
export function roundsOf(panel: PanelState): Round[] {
  return Object.values(panel.rounds)
    .map((each) => each.round)
    .sort((a, b) => a.turn - b.turn || a.step - b.step);
}

/** Everything that voices answer in a round, with what is put together and checked. */
export function repliesOf(round: Round): Reply[] {
  return [...Object.values(round.advisor_responses), ...(round.synthesis ? [round.synthesis] : []), ...Object.values(round.checks)];
}

/** The stream tells the round as it stands. */
export function roundTold(panel: PanelState, round: Round): PanelState {
  const told = panel.told + 1;
  const next = { ...panel, told, rounds: { ...panel.rounds, [round.id]: { round, at: told } } };
  return repliesOf(round).reduce((state, reply) => settled(state, round.id, reply), next);
}

/** A request was answered that was made when the stream had spoken `since` times. */
export function roundsAnswered(panel: PanelState, rounds: readonly Round[], since: number): PanelState {
  return rounds.reduce((state, round) => {
    const known = state.rounds[round.id];
    if (known !== undefined && known.at > since) return state;
    const next = { ...state, rounds: { ...state.rounds, [round.id]: { round, at: known?.at ?? 0 } } };
    return repliesOf(round).reduce((grown, reply) => settled(grown, round.id, reply), next);
  }, panel);
}

/** The stream tells how one reply stands. */
export function replyTold(panel: PanelState, told: PanelReply): PanelState {
  const known = panel.rounds[told.round];
  const count = panel.told + 1;
  if (known === undefined) return { ...panel, told: count };
  const round = { ...withReply(known.round, told.reply), all_completed: told.all_completed };
  const next = { ...panel, told: count, rounds: { ...panel.rounds, [told.round]: { round, at: count } } };
  return settled(next, told.round, told.reply);
}

function withReply(round: Round, reply: Reply): Round {
  if (reply.part === "synthesis") return { ...round, synthesis: reply };
  if (reply.part === "check") return { ...round, checks: { ...round.checks, [reply.advisor]: reply } };
  return { ...round, advisor_responses: { ...round.advisor_responses, [reply.advisor]: reply } };
}

/** What grew is void once the reply is told in another state, or in another attempt. */
function settled(panel: PanelState, round: string, reply: Reply): PanelState {
  const key = keyOf(round, reply.advisor, reply.part);
  const known = panel.speaking[key];
  if (known === undefined || (reply.state === "running" && known.epoch >= reply.epoch)) return panel;
  const { [key]: _, ...speaking } = panel.speaking;
  return { ...panel, speaking };
}

/** More of what a voice says or thinks. */
export function deltaTold(panel: PanelState, told: PanelDelta): PanelState {
  const key = keyOf(told.round, told.advisor, told.part);
  const known = panel.speaking[key];
  if (known !== undefined && told.epoch < known.epoch) return panel;
  const fresh: Speaking = { epoch: told.epoch, text: "", length: 0, thinking: "", thinkingLength: 0 };
  const before = known === undefined || known.epoch < told.epoch ? fresh : known;
  const [text, length] = told.thinking ? [before.thinking, before.thinkingLength] : [before.text, before.length];
  const added = [...told.text].length;
  // A hole, or told again: nothing changes.
  if (told.offset > length || told.offset + added <= length) return panel;
  const kept = told.offset === length ? text : [...text].slice(0, told.offset).join("");
  const grown = kept + told.text;
  const end = told.offset + added;
  const now = told.thinking ? { ...before, thinking: grown, thinkingLength: end } : { ...before, text: grown, length: end };
  return { ...panel, speaking: { ...panel.speaking, [key]: now } };
}

/** A message was edited or deleted: the round that it began shows it so. */
export function messageTold(panel: PanelState, message: Message): PanelState {
  const found = Object.values(panel.rounds).find(({ round }) => round.message?.id === message.id);
  if (found === undefined) return panel;
  const round = { ...found.round, message };
  return { ...panel, rounds: { ...panel.rounds, [round.id]: { ...found, round } } };
}
