//! `weir nic-sim`: becomes the simulated card.

use std::process::ExitCode;

use weir_command::Failure;

use crate::cli::NicSimArgs;
use crate::program::Program;

/// The program of `make nic-sim`.
const NIC_SIM: Program = Program {
    name: "weir-nic-sim",
    variable: "WEIR_NIC_SIM",
    make: "make nic-sim",
};

/// Run the command; it only returns when the program cannot be started.
pub fn run(args: NicSimArgs) -> Result<ExitCode, Failure> {
    NIC_SIM.run(args.options)
}
