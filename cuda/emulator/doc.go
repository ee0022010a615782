// Package emulator is a GPU in plain Go: a cuda.Machine that runs the same operations as
// *cuda.Session, with the same effect on memory, so that a program runs where there is no GPU, at
// the pace of tiny models.
//
// It is stricter than a GPU. Every access is checked: one outside an allocation, in freed memory,
// in device memory from the host or off its alignment is a *Fault that names the operation, the
// argument and the address. New memory is fp16 NaN. What the data can break (a slot, a count, a
// workspace that was not zeroed) is a Fault too. Shapes that no access shows to be wrong are
// refused with the *cuda.Error of the C library.
//
// Operations run at once, in call order, which is one legal schedule of CUDA. With Config.Late they
// wait until a call that blocks needs them, and see memory as it is then: a result read, or an
// input overwritten, without the wait that it needs becomes visible.
//
// Read machine.go and memory.go (what an address is), access.go (how operations reach memory),
// stream.go (when they run), launch.go (the list of operations), then the operations: copy.go,
// saver.go, attention.go, psa.go, selection.go, lookup.go, linear.go, llama.go. Arithmetic is
// float64, by package reference where it has it; values round to fp16 when stored.
package emulator
