import type { ReactNode } from "react";
import { Page } from "../shell/Page";

export default function NewAgentPage(): ReactNode {
  return (
    <Page title="New agent">
      <p>Nothing is here yet.</p>
    </Page>
  );
}
