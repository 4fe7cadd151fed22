import type { ReactNode } from "react";
import { Page } from "../shell/Page";

export default function SearchPage(): ReactNode {
  return (
    <Page title="Search">
      <p>Nothing is here yet.</p>
    </Page>
  );
}
