import { expect, test } from "vitest";

import { layout } from "../chart/axes";
import { SvgPainter } from "../chart/painter";
import { THEMES } from "../theme";
import { arrowsAre, drawMessages, hostsOf, widthOf, type Message } from "./exchange";

const asked: Message = {
    time: 1,
    end: 2,
    sender: "user",
    receiver: "web",
    port: 80,
    server: false,
    bytes: 100,
    packets: 1,
    count: 1,
    row: 0,
};
const answered = { ...asked, sender: "web", receiver: "user", server: true, time: 3, end: 4 };

test("who only asks comes first, and a response does not turn that round", () => {
    const behind = { ...asked, sender: "web", receiver: "db" };
    expect(hostsOf([behind, answered, asked])).toEqual({ hosts: ["user", "web", "db"], leftOut: 0 });
});

test("more hosts than there is room for are counted", () => {
    const many = Array.from({ length: 100 }, (_, at) => ({ ...asked, sender: `client${at}`, count: at + 1 }));
    const { hosts, leftOut } = hostsOf(many);
    expect(hosts).toHaveLength(40);
    expect(hosts).toContain("client99");
    expect(leftOut).toBe(61);
});

test("clients alone, however busy, are not the hosts: there must be something to draw between them", () => {
    const all = Array.from({ length: 50 }, (_, client) =>
        Array.from({ length: 10 }, (_, server) => ({
            ...asked,
            sender: `client${client}`,
            receiver: `server${client}.${server}`,
            count: 50 - client,
        })),
    ).flat();
    const { hosts, leftOut } = hostsOf(all);
    expect(hosts).toHaveLength(40);
    expect(leftOut).toBe(510);
    expect(hosts.filter((host) => host.startsWith("client"))).toHaveLength(4);
});

test("messages out of sight are not drawn, and larger ones are wider", () => {
    const draw = (from: number, to: number) => {
        const p = new SvgPainter();
        const x = { kind: "time", domain: [from, to], label: "" } as const;
        const area = layout({ x, y: { kind: "linear", domain: [2, 0], label: "" }, y2: null }, 400, 200, THEMES.light);
        drawMessages(
            p,
            [asked, answered],
            new Map([
                ["user", 0.5],
                ["web", 1.5],
            ]),
            area,
        );
        return p.finish(400, 200, "t").match(/<path/g)?.length ?? 0;
    };
    expect([draw(0, 5), draw(0, 2.5), draw(1.5, 1.6), draw(4.5, 5)]).toEqual([4, 2, 2, 0]);
    expect(widthOf(100_000)).toBeGreaterThan(widthOf(100));
});

test("an arrow is said to be one message only where each is", () => {
    expect(arrowsAre(true)).toMatch(/^Each arrow is an application message \(a data block\), /);
    expect(arrowsAre(false)).toContain("or all of one host to a port of another");
});
