/** Figures of groups, a row each; a group's name leads to its rows. */
import type { ComponentChildren } from "preact";
import type { Figures, Group } from "../api/types";
import { duration } from "../format";
import type { Change } from "../state/store";
import { Link } from "./Link";

export interface GroupColumn {
    head: string;
    /** What it is, where the heading is too short to tell. */
    title?: string;
    cell(group: Group): string;
}

/** Smallest, mean, percentiles (nearest rank) and largest of one of a group's times. */
export function timeColumns(figures: (group: Group) => Figures | null): GroupColumn[] {
    return (["min", "mean", "p50", "p90", "p95", "p99", "max"] as const).map((name) => ({
        head: name,
        cell: (group) => duration(figures(group)?.[name]),
    }));
}

interface Props {
    label: string;
    caption: string;
    /** What a group is. */
    head: string;
    groups: readonly Group[];
    columns: readonly GroupColumn[];
    /** Before the name. */
    lead?: (group: Group) => ComponentChildren;
    /** Where its rows are; null where no filter can name them. */
    to: (group: Group) => Change | null;
    /** Not drawn in the chart above. */
    hidden?: (group: Group) => boolean;
}

export function GroupTable(props: Props) {
    return (
        <section class="panel scroll long" aria-label={props.label} tabIndex={0}>
            <table class="figures">
                <caption>{props.caption}</caption>
                <thead>
                    <tr>
                        <th scope="col">{props.head}</th>
                        {props.columns.map(({ head, title }) => (
                            <th scope="col" key={head} title={title}>
                                {head}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {props.groups.map((group) => {
                        const to = props.to(group);
                        return (
                            <tr key={group.name} class={props.hidden?.(group) ? "off" : undefined}>
                                <th scope="row">
                                    <span class="named">
                                        {props.lead?.(group)}
                                        {to === null ? group.name : <Link to={to}>{group.name}</Link>}
                                    </span>
                                </th>
                                {props.columns.map(({ head, cell }) => (
                                    <td key={head}>{cell(group)}</td>
                                ))}
                            </tr>
                        );
                    })}
                </tbody>
            </table>
        </section>
    );
}
