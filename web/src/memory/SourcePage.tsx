import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Redirect } from "wouter";
import { ApiError, get } from "../denizen/api";
import { Page } from "../shell/Page";
import { Empty, Loaded } from "../ui/States";

/** A message by its id: leads to where it was said. */
export default function SourcePage({ id }: { id: string }): ReactNode {
  const message = useQuery({ queryKey: ["message", id], queryFn: ({ signal }) => get("/api/messages/{message_id}", { path: { message_id: id }, signal }) });
  if (message.data) return <Redirect to={`/s/${message.data.space_id}/m/${message.data.seq}`} replace />;
  const gone = message.error instanceof ApiError && message.error.status === 404;
  return (
    <Page title="Message">
      {gone ? (
        <Empty title="Message not found.">
          <p>It was forgotten, or it is in a space you are not in.</p>
        </Empty>
      ) : (
        <Loaded query={message}>{() => null}</Loaded>
      )}
    </Page>
  );
}
