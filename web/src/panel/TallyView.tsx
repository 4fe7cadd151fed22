import type { ReactNode } from "react";
import type { Round } from "../denizen/api";
import { percent } from "../ui/amounts";
import css from "./panel.module.css";
import { coloured, useAround } from "./usePanel";
import { dissentWords, distanceWords, type Tally } from "./words";

/** What a vote came to: the camps, and who stands how far from whom. */
export function TallyView({ tally, round }: { tally: Tally; round: Round }): ReactNode {
  const { advisors } = useAround();
  const nameOf = (id: string): string => round.advisor_responses[id]?.name ?? id;
  const voters = Object.keys(round.advisor_responses).filter((id) => id in tally.dissent);
  const most = Math.max(...tally.camps.map((each) => each.advisors.length));
  return (
    <div className={css.tally}>
      <div className={css.camps}>
        <p className={css.leading}>{tally.leading === null ? "No leader." : `Leading: ${tally.leading}`}</p>
        <ul aria-label="Camps">
          {tally.camps.map((camp) => (
            <li key={camp.position}>
              <span className={css.campHead}>
                <strong>{camp.position}</strong>
                <span className={css.faint}>
                  {camp.advisors.length} {camp.advisors.length === 1 ? "vote" : "votes"}, {percent(camp.confidence)} sure
                </span>
              </span>
              <span className={css.track} aria-hidden>
                <span ref={(element) => element?.style.setProperty("width", `${(camp.advisors.length / most) * 100}%`)} />
              </span>
              <span className={css.voices}>
                {camp.advisors.map((id) => (
                  <span key={id} className={css.voice} ref={coloured(advisors.get(id)?.colour)}>
                    <span className={css.swatch} aria-hidden />
                    {nameOf(id)}
                  </span>
                ))}
              </span>
            </li>
          ))}
        </ul>
      </div>
      {voters.length > 1 && (
        <figure className={css.dissent}>
          <figcaption>
            <strong>Distance between advisors.</strong> {dissentWords(tally, nameOf)}
          </figcaption>
          <div className={css.scroll} role="region" aria-label="Dissent map" tabIndex={0}>
            <table>
              <thead>
                <tr>
                  <td />
                  {voters.map((id, index) => (
                    <th key={id} scope="col" ref={coloured(advisors.get(id)?.colour)}>
                      <span className={css.swatch} aria-hidden />
                      <span className="visually-hidden">{nameOf(id)}</span>
                      <span aria-hidden>{index + 1}</span>
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {voters.map((one, index) => (
                  <tr key={one} ref={coloured(advisors.get(one)?.colour)}>
                    <th scope="row">
                      <span className={css.swatch} aria-hidden />
                      <span aria-hidden>{index + 1}</span> {nameOf(one)}
                    </th>
                    {voters.map((other) => {
                      const far = tally.dissent[one]?.[other] ?? 0;
                      return (
                        <td key={other} data-far={one === other ? undefined : Math.round(far * 5)} title={one === other ? undefined : `${nameOf(one)} and ${nameOf(other)}: ${distanceWords(far)}`}>
                          {one === other ? "" : far.toFixed(1)}
                        </td>
                      );
                    })}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p className={css.faint}>0.0: same position. 1.0: both confident of different positions.</p>
        </figure>
      )}
    </div>
  );
}
