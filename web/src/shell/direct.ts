/** Conversations of two: a private space that is named after its two members, as `Noor and Ada`. */

interface Shared {
  name: string;
  private: boolean;
  members: readonly { id: string; name: string }[];
}

/** Whether it is the private space of the person and one other. One with a name of its own is a space like others. */
export function isDirectSpace(space: Shared, me: string): boolean {
  if (!space.private || space.members.length !== 2 || !space.members.some((each) => each.id === me)) return false;
  const [one, other] = space.members.map((each) => each.name);
  return [`${one} and ${other}`, `${other} and ${one}`].includes(space.name);
}
