import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../denizen/api";
import { bytes } from "../ui/amounts";
import { Gauge } from "../ui/Gauge";
import { Loaded } from "../ui/States";
import { Section } from "./parts";

/** How much of the organization's room its files take. */
export function StoredFiles(): ReactNode {
  const usage = useQuery({ queryKey: ["file usage"], queryFn: ({ signal }) => get("/api/organization/files", { signal }) });
  return (
    <Section title="Files" about="Files of messages, results of tools, and uploads of the last day. The same content counts once.">
      <Loaded query={usage} lines={2}>
        {({ used, limit, file_limit }) => (
          <>
            <Gauge label="Room for files" value={used} max={limit} text={`${bytes(used)} of ${bytes(limit)}`} />
            <p>One file can have up to {bytes(file_limit)}. When there is no room, delete messages with files, or ask an operator for more.</p>
          </>
        )}
      </Loaded>
    </Section>
  );
}
