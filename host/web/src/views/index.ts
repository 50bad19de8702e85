/** Every view of the page, in the order of the navigation. Each is a module of its own, loaded when it is first shown. */
import type { ComponentType } from "preact";

export interface View {
    /** In the URL. */
    name: string;
    title: string;
    group: "Answers" | "Tables" | "Over time" | "Packets" | "Path";
    /** `g`, then this key, goes there. */
    key: string;
    /** One sentence for the navigation's tooltip and the help. */
    about: string;
    /** Shows a chosen connection alone: only there the shell says which it is. */
    one?: boolean;
    /** Needs packets to be kept (`hasPackets`): the shell says so instead of showing it. */
    packets?: boolean;
    load(): Promise<{ default: ComponentType }>;
}

export const VIEWS: readonly View[] = [
    {
        name: "overview",
        title: "Overview",
        group: "Answers",
        key: "o",
        about: "What was found, worst first, and the capture over time",
        load: () => import("./overview"),
    },
    {
        name: "dialogues",
        title: "Dialogues",
        group: "Answers",
        key: "h",
        about: "Who talks to whom, how much, and how much was sent again",
        load: () => import("./dialogues"),
    },
    {
        name: "delays",
        title: "Whose time",
        group: "Answers",
        key: "y",
        about: "Client, network and server: pies and the summary of delays",
        load: () => import("./delays"),
    },
    {
        name: "diagnosis",
        title: "Diagnosis",
        group: "Answers",
        key: "n",
        about: "Bottlenecks against their thresholds, what cost time, what limited the transfers",
        load: () => import("./diagnosis"),
    },
    {
        name: "connections",
        title: "Connections",
        group: "Tables",
        key: "c",
        about: "Every connection: how it began, ran and ended",
        load: () => import("./connections"),
    },
    {
        name: "transactions",
        title: "Transactions",
        group: "Tables",
        key: "x",
        about: "Every request and its response",
        load: () => import("./transactions"),
    },
    {
        name: "setups",
        title: "Setups",
        group: "Over time",
        key: "e",
        about: "Every connection setup as a mark",
        load: () => import("./setups"),
    },
    {
        name: "marks",
        title: "Transaction chart",
        group: "Over time",
        key: "r",
        about: "Every transaction as a mark, with histogram and statistics",
        load: () => import("./marks"),
    },
    {
        name: "live",
        title: "Live",
        group: "Over time",
        key: "v",
        about: "What a daemon measures now: the last seconds, and findings as they come",
        load: () => import("./live"),
    },
    {
        name: "timeline",
        title: "Time lines",
        group: "Over time",
        key: "l",
        about: "Load, rates, throughput and losses over time",
        load: () => import("./timeline"),
    },
    {
        name: "connection",
        title: "Connection",
        group: "Packets",
        key: "i",
        about: "Time-sequence graph and windows of one connection",
        one: true,
        packets: true,
        load: () => import("./connection"),
    },
    {
        name: "packets",
        title: "Packets",
        group: "Packets",
        key: "k",
        about: "Every packet of one connection, as a table",
        one: true,
        packets: true,
        load: () => import("./packets"),
    },
    {
        name: "bounce",
        title: "Bounce diagram",
        group: "Packets",
        key: "b",
        about: "Every packet of one connection as an arrow between client and server",
        one: true,
        packets: true,
        load: () => import("./bounce"),
    },
    {
        name: "waterfall",
        title: "Waterfall",
        group: "Packets",
        key: "f",
        about: "Transactions as bars: client, request, wait for the response, response",
        one: true,
        load: () => import("./waterfall"),
    },
    {
        name: "exchange",
        title: "Data exchange",
        group: "Packets",
        key: "m",
        about: "Application messages between hosts over time, and the packets beneath",
        one: true,
        load: () => import("./exchange"),
    },
    {
        name: "timing",
        title: "Packet timing",
        group: "Packets",
        key: "p",
        about: "Every packet a mark: of one connection or of hundreds, from minutes to microseconds",
        one: true,
        packets: true,
        load: () => import("./timing"),
    },
    {
        name: "taps",
        title: "Taps and legs",
        group: "Path",
        key: "j",
        about: "Several captures of one path: delays, losses and clocks of the legs between them",
        load: () => import("./taps"),
    },
];

export const START = "overview";
