/** Around a view of the connection that was chosen, or of what the filter of a table selects. */
import type { ComponentChildren } from "preact";
import { FilterBox, filterParam, type FilterProps } from "../components/FilterBox";
import { param } from "../state/store";
import { OfConnection } from "./OfConnection";

interface Props extends FilterProps {
    children: (filter: string) => ComponentChildren;
}

export function Selected({ table, example, children }: Props) {
    const connection = param("connection");
    if (connection !== "") {
        const id = table === "connections" ? "id" : "connection_id";
        return <OfConnection>{() => children(`${id} = ${connection}`)}</OfConnection>;
    }
    return (
        <>
            <FilterBox table={table} example={example} />
            {children(param(filterParam(table)))}
        </>
    );
}
