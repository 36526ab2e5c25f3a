# SPDX-License-Identifier: Apache-2.0
"""pypto and the process around it: Ctrl-C while something is measured, fork()."""

from __future__ import annotations

from host_kernels import run_script

HEAD = '''
import os, signal, sys, threading, time


def in_child(work):
    """What `work` prints in a forked child; its status."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:
            print(type(error).__name__, error)
        sys.stdout.flush()
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
'''


def lines_of(text: str) -> list[str]:
    done = run_script(text, head=HEAD)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_ctrl_c_ends_a_measurement():
    lines = lines_of(
        """
        d = pto.alloc_tensor(4)
        for compare in (None, "reference"):  # in the device's run, and in what may follow it
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            begin = time.monotonic()
            try:
                pto.profile_on_npu(SPIN, (d, 0xffffffff), **ONE, device="emulated:reference", compare=compare)
            except KeyboardInterrupt:
                print("interrupted", time.monotonic() - begin < 20)
        profile = pto.profile_on_npu(SPIN, (d, 10), **ONE, device="emulated:reference")
        print(profile.cycles > 0, d.numpy(np.uint32)[0])
        """
    )
    assert lines == ["interrupted True"] * 2 + ["True 0"]


def test_an_exception_of_a_signal_handler_ends_a_measurement():
    lines = lines_of(
        """
        def stop(*_):
            raise TimeoutError("enough")

        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            pto.profile_on_npu(SPIN, (pto.alloc_tensor(4), 0xffffffff), **ONE, device="emulated:reference")
        except TimeoutError as error:
            print(error)
        """
    )
    assert lines == ["enough"]


def test_a_child_has_devices_of_its_own():
    lines = lines_of(
        """
        pto.device("emulated:reference")
        old = pto.alloc_tensor(4, pto.u32)
        pto.launch(SPIN, **ONE, args=(old, 5))
        old.wait()

        def work():
            print(pto.current_device().name, pto.current_device().allocated)
            new = pto.alloc_tensor(4, pto.u32)
            launch = pto.launch(SPIN, **ONE, args=(new, 5))
            pto.sync()
            print(new.numpy()[0], launch.cycles > 0)
            pto.device("sim")
            print(pto.Tensor.from_numpy(np.arange(3, dtype=np.int32)).numpy().tolist())

        print("status", in_child(work))
        print(old.numpy()[0])
        """
    )
    assert lines == ["emulated:reference 0", "1 True", "[0, 1, 2]", "status 0", "1"]


def test_what_the_parent_made_says_so_in_the_child():
    lines = lines_of(
        """
        import pypto.debug as dbg

        d = pto.alloc_tensor(4)
        stream = pto.Stream()
        launch = pto.launch(SPIN, **ONE, args=(d, 5), stream=stream)
        event = stream.record()
        session = dbg.debug_kernel(SPIN, (d, 5), **ONE, verbose=False)

        def work():
            new = pto.alloc_tensor(4)
            for use in (d.numpy, d.free, d.wait, stream.sync, event.wait, launch.wait, session.step,
                        lambda: pto.launch(SPIN, **ONE, args=(d, 5)),
                        lambda: pto.launch(SPIN, **ONE, args=(new, 5), stream=stream)):
                try:
                    use()
                    print("no error")
                except pto.DeviceError as error:
                    print(str(error)[:27])

        print("status", in_child(work))
        """
    )
    assert lines == ["this was made before fork()"] * 9 + ["status 0"]


def test_a_child_made_while_kernels_run_and_threads_wait():
    lines = lines_of(
        """
        d = pto.alloc_tensor(4)
        launch = pto.launch(SPIN, **ONE, args=(d, 0xffffffff))
        waiter = threading.Thread(target=lambda: launch.status)
        waiter.start()
        time.sleep(0.1)

        def work():
            new = pto.alloc_tensor(4, pto.u32)
            pto.launch(SPIN, **ONE, args=(new, 5)).wait()
            print(new.numpy()[0])
            sys.stdout.flush()

        print("status", in_child(work))
        sys.stdout.flush()
        if os.fork() == 0:
            sys.exit(0)  # by way of atexit, which must not wait for what runs in the parent
        os.wait()
        launch.device.interrupt()
        waiter.join()
        print(launch.status)
        """
    )
    assert lines == ["1", "status 0", "interrupted"]


def test_multiprocessing_forks_workers():
    lines = lines_of(
        """
        import multiprocessing

        def count(rounds):
            d = pto.alloc_tensor(4, pto.u32)
            pto.launch(SPIN, **ONE, args=(d, rounds))
            return int(d.numpy()[0]) + rounds

        pto.launch(SPIN, **ONE, args=(pto.alloc_tensor(4), 5)).wait()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(count, [1, 2, 3]))
        """
    )
    assert lines == ["[2, 3, 4]"]


def test_a_lock_that_another_thread_held_does_not_stop_the_child():
    lines = lines_of(
        """
        device, kernel, programs = (sys.modules[f"pypto.{name}"] for name in ("device", "kernel", "programs"))
        held, done = threading.Event(), threading.Event()

        def hold():
            with device._lock, kernel._compiling, programs._lock:
                held.set()
                done.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()

        def work():
            d = pto.alloc_tensor(4, pto.u32)
            pto.launch(pto.assemble(".kernel k(ptr.u32 x)\\n    store.u32 hbm[x], 9\\n    exit\\n.end\\n"), **ONE, args=(d,))
            print(d.numpy()[0])

        status = in_child(work)
        done.set()
        holder.join()
        print("status", status)
        """
    )
    assert lines == ["9", "status 0"]
