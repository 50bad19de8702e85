/** Around the views of one connection: choosing it, its views beside one another, its own time, loading. */
import type { ComponentChildren } from "preact";
import type { Capture } from "../api/types";
import { Loading } from "../components/load";
import { capture, param, state } from "../state/store";
import { Choose } from "./Choose";
import { useConnection, useSpan, type One } from "./connection";
import { Tabs } from "./Tabs";

export function OfConnection(props: { children: (one: One) => ComponentChildren }) {
    const id = param("connection");
    const answer = useConnection(capture.value as Capture, id);
    useSpan(answer.data);
    if (id === "") return <Choose />;
    return (
        <Loading of={answer} what="Connection">
            {(one) => (
                <>
                    <Tabs />
                    {/* The range is the connection's own by the next moment. */}
                    {state.value.to !== null && props.children(one)}
                </>
            )}
        </Loading>
    );
}
