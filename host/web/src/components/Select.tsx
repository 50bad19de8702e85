/** A choice among the values of one of the view's parameters. */
import { go } from "../state/store";

interface Props {
    label: string;
    /** Of the parameter. */
    name: string;
    value: string;
    /** Values and what they are called. */
    options: readonly (readonly [value: string, label: string])[];
    /** Parameters that make no sense any more. */
    resets?: string;
}

export function Select(props: Props) {
    const { label, name, value, options, resets } = props;
    return (
        <label>
            {label}{" "}
            <select
                value={value}
                onChange={({ currentTarget }) =>
                    go({ params: { ...(resets ? { [resets]: "" } : {}), [name]: currentTarget.value } })
                }
            >
                {options.map(([value, label]) => (
                    <option key={value} value={value}>
                        {label}
                    </option>
                ))}
            </select>
        </label>
    );
}
