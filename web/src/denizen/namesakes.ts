/** What tells spaces of the same name apart. Pure. */

interface Named {
  id: string;
  name: string;
  created_at: string;
  members: readonly { id: string; name: string; handle: string }[];
}

const NAMED = 3;
const FORMS: Intl.DateTimeFormatOptions[] = [{ dateStyle: "medium" }, { dateStyle: "medium", timeStyle: "short" }, { dateStyle: "medium", timeStyle: "medium" }];

/**
 * For each space whose name another one has as well, words that the others do not have: its other members, their handles
 * or, where those are the same, when it was created.
 */
export function namesakes(spaces: readonly Named[], me: string): ReadonlyMap<string, string> {
  const hints = new Map<string, string>();
  const byName = new Map<string, Named[]>();
  for (const each of spaces) {
    const name = each.name.trim().toLocaleLowerCase();
    byName.set(name, [...(byName.get(name) ?? []), each]);
  }
  for (const alike of byName.values()) {
    if (alike.length < 2) continue;
    const told = ways(me).map((way) => alike.map(way)).find((words) => new Set(words).size === words.length);
    // Ids are in the order of creation.
    const ids = alike.map((each) => each.id).sort();
    alike.forEach((each, index) => hints.set(each.id, told ? told[index]! : `${ids.indexOf(each.id) + 1} of ${ids.length}`));
  }
  return hints;
}

function ways(me: string): ((space: Named) => string)[] {
  return [
    (space) => withOthers(space, me, (each) => each.name),
    (space) => withOthers(space, me, (each) => `@${each.handle}`),
    ...FORMS.map((form) => {
      const format = new Intl.DateTimeFormat(undefined, form);
      return (space: Named) => `created ${format.format(new Date(space.created_at))}`;
    }),
  ];
}

function withOthers(space: Named, me: string, word: (member: Named["members"][number]) => string): string {
  const others = space.members.filter((each) => each.id !== me).map(word);
  if (others.length === 0) return "only you";
  const more = others.length - NAMED;
  return others.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
