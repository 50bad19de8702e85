/** Values with their names. */
export function Named(props: { look: "facts" | "attributes"; values: readonly (readonly [string, string])[] }) {
    return (
        <dl class={props.look}>
            {props.values.map(([name, value]) => (
                <div key={name}>
                    <dt>{name}</dt>
                    <dd>{value}</dd>
                </div>
            ))}
        </dl>
    );
}
