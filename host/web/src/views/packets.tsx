/** The packets of a connection as a table. */
import { useEffect, useRef, useState } from "preact/hooks";
import { startOf } from "../chart/ChartFrame";
import { Loading } from "../components/load";
import { count, date, duration, moment, UNKNOWN } from "../format";
import { carried, nameOf, type One } from "../packets/connection";
import { OfConnection } from "../packets/OfConnection";
import { Pages } from "../packets/Pages";
import { PAGE, remarks, rowFrom, usePage, type Page, type Row } from "../packets/rows";
import { go, param, setParam } from "../state/store";

const HEIGHT = 26;

interface Column {
    name: string;
    title: string;
    width: number;
    number?: boolean;
    text(row: Row, start: bigint): string;
}

const optional = (value: number | null) => (value === null ? UNKNOWN : count(value));

const COLUMNS: readonly Column[] = [
    { name: "No.", title: "Frame in the file, from 1", width: 80, number: true, text: (row) => count(row.number) },
    {
        name: "Time",
        title: "Time of day, UTC; with its date where that is not the first of the capture",
        width: 160,
        number: true,
        text: (row, start) => moment(start, row.time, 9),
    },
    {
        name: "Delta",
        title: "Since the connection's previous packet",
        width: 86,
        number: true,
        text: (row) => duration(row.delta),
    },
    { name: "From", title: "Who sent it", width: 62, text: (row) => (row.server ? "server" : "client") },
    { name: "Flags", title: "Flags of the TCP header", width: 96, text: (row) => row.flags },
    { name: "Data", title: "Payload, bytes", width: 60, number: true, text: (row) => count(row.length) },
    {
        name: "Seq",
        title: "Sequence number since the sender's first",
        width: 92,
        number: true,
        text: (row) => count(row.seq),
    },
    {
        name: "Ack",
        title: "Acknowledgment since the other side's first",
        width: 92,
        number: true,
        text: (row) => optional(row.ack),
    },
    {
        name: "Window",
        title: "Receive window, bytes; with an x: as on the wire, because its scale is not known",
        width: 92,
        number: true,
        text: (row) => `${count(row.window)}${row.scaled ? "" : " x"}`,
    },
    // Before what is looked at less: on a narrow page it would be out of sight behind it.
    { name: "Remarks", title: "What is remarkable about it", width: 330, text: remarks },
    {
        name: "Block",
        title: "Size of the data block that ends here, bytes",
        width: 82,
        number: true,
        text: (row) => (row.block === null ? "" : count(row.block)),
    },
    { name: "Frame", title: "Bytes on the wire", width: 66, number: true, text: (row) => count(row.wire) },
    { name: "TTL", title: "Time to live or hop limit", width: 50, number: true, text: (row) => count(row.ttl) },
    {
        name: "IP id",
        title: "Identification of the IP header",
        width: 74,
        number: true,
        text: (row) => String(row.ipId),
    },
];
/** More of a time with its date, px. */
const DATE = 80;

export default function Packets() {
    return <OfConnection>{(one) => <PacketTable one={one} />}</OfConnection>;
}

export function PacketTable(props: { one: One }) {
    const { one } = props;
    const answer = usePage(one.connection.id);
    return (
        <Loading of={answer} what="Packets">
            {(page) => <Table one={one} page={page} />}
        </Loading>
    );
}

function Table(props: { one: One; page: Page }) {
    const { one, page } = props;
    const { rows } = page;
    const start = startOf();
    const scroller = useRef<HTMLDivElement>(null);
    const [top, setTop] = useState(0);
    const [tall, setTall] = useState(500);
    const at = param("at");
    const chosen = at === "" || rows.length === 0 ? -1 : rowFrom(rows, Number(at));
    useEffect(() => {
        if (!scroller.current) return;
        const watch = new ResizeObserver(([entry]) => entry && setTall(entry.contentRect.height));
        watch.observe(scroller.current);
        return () => watch.disconnect();
    }, []);
    // Where a link or another view points to is scrolled to; later the reader moves.
    useEffect(() => {
        if (scroller.current) scroller.current.scrollTop = Math.max(0, chosen - 4) * HEIGHT;
    }, [page]);

    const choose = (to: number) => {
        const row = rows[Math.min(Math.max(to, 0), rows.length - 1)];
        const box = scroller.current;
        if (!row || !box) return;
        setParam("at", row.time.toFixed(9), { replace: true });
        const y = rows.indexOf(row) * HEIGHT;
        if (y < box.scrollTop) box.scrollTop = y;
        else if (y + 2 * HEIGHT > box.scrollTop + tall) box.scrollTop = y + 2 * HEIGHT - tall;
    };
    /** The packet in the time-sequence graph, with some time around it. */
    const open = (index: number) => {
        const row = rows[index];
        if (!row) return;
        const half = Math.max(1e-6, (one.to - one.from) / 40);
        go({ view: "connection", from: Math.max(0, row.time - half), to: row.time + half });
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const fits = Math.max(1, Math.floor(tall / HEIGHT) - 2);
        const remarkable = (step: 1 | -1) => {
            for (let to = chosen + step; to >= 0 && to < rows.length; to += step) {
                if (["RETRANSMISSION", "RST", "ZERO_WINDOW"].includes(rows[to]?.kind ?? "")) return choose(to);
            }
        };
        const keys: Record<string, () => void> = {
            ArrowDown: () => choose(chosen + 1),
            ArrowUp: () => choose(chosen - 1),
            PageDown: () => choose(chosen + fits),
            PageUp: () => choose(chosen - fits),
            Home: () => choose(0),
            End: () => choose(rows.length - 1),
            Enter: () => open(chosen),
            n: () => remarkable(1),
            p: () => remarkable(-1),
        };
        const act = keys[event.key];
        if (!act) return;
        event.preventDefault();
        event.stopPropagation();
        act();
    };
    const last = rows.at(-1)?.time ?? 0;
    const dated = date(start, last, 9) === date(start, 0, 9) ? 0 : DATE;
    const widths = COLUMNS.map(({ name, width }) => width + (name === "Time" ? dated : 0));
    const template = widths.map((width) => `${width}px`).join(" ");
    const wide = widths.reduce((sum, width) => sum + width, 0);
    const first = Math.max(0, Math.floor(top / HEIGHT) - 2);
    const inSight = rows.slice(first, first + Math.ceil(tall / HEIGHT) + 4);
    return (
        <section class="panel table packets" aria-label="Packets">
            <div class="tablehead">
                <span>
                    {nameOf(one.connection.client)} → {nameOf(one.connection.server)}
                </span>
                <Pages what="packets" offset={page.offset} shown={rows.length} total={page.total} size={PAGE} />
            </div>
            <p class="note">
                {carried(one) && "Enter or a double click shows a packet in the graph. "}Keys n and p go to the next and
                previous repeat, reset or closed window.
            </p>
            <div
                ref={scroller}
                class="rows"
                role="grid"
                aria-label={`Packets, ${count(rows.length)} rows`}
                aria-rowcount={rows.length + 1}
                aria-colcount={COLUMNS.length}
                tabIndex={0}
                onScroll={(event) => setTop(event.currentTarget.scrollTop)}
                onKeyDown={onKeyDown}
                {...(chosen >= first && chosen < first + inSight.length
                    ? { "aria-activedescendant": `row-${chosen}` }
                    : {})}
            >
                <div role="rowgroup" class="headrow" style={{ width: `${wide}px` }}>
                    <div role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
                        {COLUMNS.map((column) => (
                            <div
                                key={column.name}
                                role="columnheader"
                                title={column.title}
                                class={column.number ? "number" : undefined}
                            >
                                {column.name}
                            </div>
                        ))}
                    </div>
                </div>
                <div
                    role="rowgroup"
                    style={{ height: `${rows.length * HEIGHT}px`, width: `${wide}px`, position: "relative" }}
                >
                    {inSight.map((row, place) => {
                        const index = first + place;
                        return (
                            <div
                                key={row.packet}
                                id={`row-${index}`}
                                role="row"
                                aria-rowindex={index + 2}
                                aria-selected={index === chosen}
                                class={`${row.server ? "odd " : ""}${row.kind === "RETRANSMISSION" || row.kind === "RST" ? "loud" : ""}`}
                                style={{ gridTemplateColumns: template, top: `${index * HEIGHT}px` }}
                                onClick={() => choose(index)}
                                onDblClick={() => open(index)}
                            >
                                {COLUMNS.map((column) => {
                                    const text = column.text(row, start);
                                    return (
                                        <div
                                            key={column.name}
                                            role="gridcell"
                                            title={text}
                                            class={column.number ? "number" : undefined}
                                        >
                                            {text}
                                        </div>
                                    );
                                })}
                            </div>
                        );
                    })}
                </div>
            </div>
        </section>
    );
}
