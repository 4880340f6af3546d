#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The heap of a process in which workers run and must not be interrupted.
//
// Memory that goes back to the kernel has to go from every CPU's TLB: the kernel interrupts each CPU that runs a thread
// of the process, workers too. Reading 900 000 routes and building a list of 10 000 rules gave back so much, and so
// often, that it made 26 000 such interrupts in 35 s.
namespace cachewire::base {

// From now on what is freed stays the process's, for its next reload, and threads have no heaps of their own. Before
// the first thread begins. Where the C library isn't glibc it does nothing.
void keep_freed_memory() noexcept;

}  // namespace cachewire::base
