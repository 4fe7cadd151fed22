import { Lock } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useEntities, useMe } from "../denizen/hooks";
import { Empty } from "../ui/States";

/** For whoever came by a direct address to what is for others: what it is, and whom to ask. */
export function NotForYou({ what }: { what: string }): ReactNode {
  const me = useMe();
  const entities = useEntities();
  const mighty = entities.data?.filter((each) => each.role === "owner" || each.role === "admin") ?? [];
  return (
    <Empty title={what} icon={<Lock size={28} aria-hidden />}>
      <p>
        You are here as {me.role}. {mighty.length > 0 && <>Ask {mighty.slice(0, 5).map((each) => each.name).join(", ")} for access.</>}
      </p>
      <p>
        <Link href="/">Back to your spaces</Link>
      </p>
    </Empty>
  );
}
