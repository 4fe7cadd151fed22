import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../denizen/api";
import { Pictures } from "../ui/Avatar";

const STALE_MILLISECONDS = 5 * 60 * 1000;
const NONE: Readonly<Record<string, string>> = {};

/** Whoever is shown inside has their picture, if they have one. */
export function Faces({ children }: { children: ReactNode }): ReactNode {
  const told = useQuery({
    queryKey: ["pictures"],
    queryFn: ({ signal }) => get("/api/pictures", { signal }),
    staleTime: STALE_MILLISECONDS,
    refetchOnWindowFocus: true,
  });
  return <Pictures value={told.data?.pictures ?? NONE}>{children}</Pictures>;
}
