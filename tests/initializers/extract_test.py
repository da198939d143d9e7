# SPDX-License-Identifier: Apache-2.0
"""muster-initializer --extract: archives of every kind, damaged archives, a second run, kills during the run."""

import gzip
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from initializer_case import BINARY, DEADLINE, MIB, InitializerCase, clean_environment, main, some_bytes

from web_server import WebServer

CONFIGURATION = 78


def tar_of(members, compression=""):
    """`members`: name -> content, or a TarInfo with its content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{compression}") as archive:
        for name, content in members.items() if isinstance(members, dict) else members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            if content is not None:
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content) if content is not None else None)
    return out.getvalue()


def zip_of(members, compression=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def zstd_of(data, *flags):
    return subprocess.run(["zstd", "-q", "-c", *flags], input=data, stdout=subprocess.PIPE, check=True).stdout


def member(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


FILES = {"train/0.bin": some_bytes(3 * MIB + 17), "train/1.txt": b"one", "README.md": b"", "ünïcode/日本": b"u"}


class ExtractCase(InitializerCase):
    flags = ("--extract",)

    def setUp(self):
        super().setUp()
        self.source = os.path.join(self.dir, "source")
        os.mkdir(self.source)
        self.uri = f"file://{self.source}"

    def lay(self, **archives):
        for name, data in archives.items():
            self.lay_at(name.replace("__", "/").replace("_", "."), data)

    def lay_at(self, path, data):
        path = os.path.join(self.source, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


class Kinds(ExtractCase):
    def test_each_kind_of_archive_is_unpacked(self):
        tar = tar_of(FILES)
        for name, data in (
            ("d.tar", tar),
            ("d.tar.gz", tar_of(FILES, "gz")),
            ("d.TGZ", tar_of(FILES, "gz")),
            ("d.tar.zst", zstd_of(tar)),
            ("d.zip", zip_of(FILES)),
            ("s.zip", zip_of(FILES, zipfile.ZIP_STORED)),
        ):
            with self.subTest(name):
                shutil.rmtree(self.target, ignore_errors=True)
                shutil.rmtree(self.source)
                os.mkdir(self.source)
                self.lay_at(name, data)
                end = self.succeeds(f"{self.uri}/{name}", FILES)
                self.assertEqual(
                    (end["files"], end["unpacked_files"], end["unpacked_bytes"]),
                    (1, len(FILES), sum(map(len, FILES.values()))),
                )

    def test_in_several_pieces(self):
        """Several gzip members or zstd frames, as pigz, bgzip and zstd -T write them."""
        tar = tar_of(FILES)
        for name, compress in (("d.tar.gz", gzip.compress), ("d.tar.zst", zstd_of)):
            shutil.rmtree(self.target, ignore_errors=True)
            self.lay_at(name, b"".join(compress(tar[at : at + MIB]) for at in range(0, len(tar), MIB)))
            self.succeeds(f"{self.uri}/{name}", FILES)

    def test_beside_other_files(self):
        """Each archive is unpacked into its own folder; a file without an archive's name is not unpacked."""
        self.lay(a_tar=tar_of({"x": b"1", "y/z": b"2"}), sub__b_zip=zip_of({"x": b"3"}), plain=b"4", odd_tar_txt=b"5")
        self.succeeds(self.uri, {"x": b"1", "y/z": b"2", "sub/x": b"3", "plain": b"4", "odd.tar.txt": b"5"})
        manifest = {file["path"]: file for file in self.manifest()["files"]}
        self.assertTrue(manifest["a.tar"]["unpacked"])
        self.assertEqual(manifest["sub/x"]["archive"], "sub/b.zip")

    def test_a_tar_of_here(self):
        """tar -C folder . : every name begins with "./"; folders are kept, empty ones too."""
        data = tar_of(
            [(member("./", tarfile.DIRTYPE), None), (member("./empty/", tarfile.DIRTYPE), None), ("./a/b", b"1")]
        )
        self.lay(d_tar=data)
        self.succeeds(self.uri, {"a/b": b"1"})
        self.assertTrue(os.path.isdir(os.path.join(self.target, "empty")))

    def test_links_become_files(self):
        data = tar_of(
            [
                (member("early", tarfile.SYMTYPE, "dir/file"), None),
                ("dir/file", b"content"),
                (member("hard", tarfile.LNKTYPE, "dir/file"), None),
                (member("dir/up", tarfile.SYMTYPE, "../hard"), None),
            ]
        )
        self.lay(d_tar=data)
        self.succeeds(self.uri, dict.fromkeys(("early", "dir/file", "hard", "dir/up"), b"content"))
        self.assertFalse(os.path.islink(os.path.join(self.target, "early")))

    def test_the_last_of_a_name_counts(self):
        self.lay(d_tar=tar_of([("a", b"old"), ("b", b"b"), ("a", b"newer")]))
        self.succeeds(self.uri, {"a": b"newer", "b": b"b"})

    def test_a_long_name_and_a_sparse_file(self):
        folder = os.path.join(self.dir, "made")
        long = "/".join(["d" * 100] * 4)
        os.makedirs(f"{folder}/{long}")
        with open(f"{folder}/sparse", "wb") as file:
            file.seek(5 * MIB)
            file.write(b"end")
        with open(f"{folder}/{long}/f", "wb") as file:
            file.write(b"f")
        for form in ("gnu", "posix"):
            shutil.rmtree(self.target, ignore_errors=True)
            subprocess.run(
                ["tar", "--sparse", f"--format={form}", "-cf", f"{self.source}/d.tar", "-C", folder, "."], check=True
            )
            self.succeeds(self.uri, {"sparse": bytes(5 * MIB) + b"end", f"{long}/f": b"f"})

    def test_from_a_web_server(self):
        server = WebServer()
        self.addCleanup(server.close)
        server.digests = False
        server.files["/d.tar.gz"] = tar_of(FILES, "gz")
        end = self.succeeds(f"{server.url}/d.tar.gz", FILES)
        self.assertEqual(end["unverified_files"], 1, "the archive")
        end = self.succeeds(
            f"{server.url}/d.tar.gz#sha256={hashlib.sha256(server.files['/d.tar.gz']).hexdigest()}", FILES
        )
        self.assertEqual(end["unverified_files"], 0)

    def test_patterns_choose_the_files(self):
        """--include applies to the archives; --ignore also to their members."""
        self.lay(a_tar=tar_of({"x.txt": b"1", "y.md": b"2"}), b_tar=tar_of({"z.txt": b"3"}))
        self.succeeds(self.uri, {"x.txt": b"1"}, "--include", "a.tar", "--ignore", "*.md")

    def test_no_archive(self):
        self.lay(plain=b"1")
        self.succeeds(self.uri, {"plain": b"1"})
        self.assertIn("no file of", self.said)


class Again(ExtractCase):
    def test_nothing_has_changed(self):
        self.lay(a_tar=tar_of({"x": b"1"}), b_tar=tar_of({"y": b"2"}), plain=b"3")
        expected = {"x": b"1", "y": b"2", "plain": b"3"}
        self.succeeds(self.uri, expected)
        end = self.succeeds(self.uri, expected)
        self.assertEqual((end["unchanged"], end["received"]), (True, 0))
        check = subprocess.run(
            [BINARY, "verify", self.target, "--json"],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=clean_environment(),
            check=False,
        )
        self.assertEqual((check.returncode, json.loads(check.stdout)["files"]), (0, 3))

    def test_one_of_them_has_changed(self):
        """Only that archive is fetched and unpacked again; so is one with a member changed in the target."""
        self.lay(a_tar=tar_of({"x": b"1"}), b_tar=tar_of({"y": b"2"}))
        self.succeeds(self.uri, {"x": b"1", "y": b"2"})
        self.lay(b_tar=tar_of({"y": b"changed"}))
        end = self.succeeds(self.uri, {"x": b"1", "y": b"changed"})
        self.assertEqual((end["kept_files"], end["unpacked_files"]), (1, 1))
        os.unlink(os.path.join(self.target, "x"))
        end = self.succeeds(self.uri, {"x": b"1", "y": b"changed"})
        self.assertEqual((end["kept_files"], end["unpacked_files"]), (1, 1))

    def test_with_and_without(self):
        data = tar_of({"x": b"1"})
        self.lay(a_tar=data)
        self.succeeds(self.uri, {"x": b"1"})
        self.flags = ()
        self.succeeds(self.uri, {"x": b"1", "a.tar": data})

    def test_killed_while_it_unpacks(self):
        files = {f"{n}.bin": some_bytes(40_000, n) for n in range(500)}
        self.lay(d_tar_gz=tar_of(files, "gz"))
        for number in (1, 2, 3, 120, 499):
            with self.subTest(number):
                shutil.rmtree(self.target, ignore_errors=True)
                self.assertTrue(self.dies_at_rename(number, self.uri), "it was done before")
                self.check_nothing()
                self.assertEqual(len(self.staged()), number - 1)
                self.succeeds(self.uri, files)


class Bad(ExtractCase):
    def refuses(self, data, words, code=CONFIGURATION, name="d.tar", flags=()):
        shutil.rmtree(self.target, ignore_errors=True)
        self.lay_at(name, data)
        self.refused(f"{self.uri}/{name}", code, words, *flags)
        self.assertRegex(self.said, r"d\.(tar|zip)")
        self.assertEqual(sorted(os.listdir(self.dir)), ["source", "target"], "nothing beside the target")

    def test_paths_that_escape(self):
        for name in ("../evil", "a/../../evil", "/etc/evil", "a//b", ".muster/manifest.json", "x/./y"):
            with self.subTest(name):
                self.refuses(tar_of({name: b"evil", "good": b"1"}), "cannot be a file below the target")
        for name in ("../evil", "/etc/evil"):
            with self.subTest(zip=name):
                self.refuses(zip_of({name: b"evil"}), "cannot be a file below the target", name="d.zip")

    def test_links_that_escape(self):
        for kind, target in (
            (tarfile.SYMTYPE, "/etc/passwd"),
            (tarfile.SYMTYPE, "../../x"),
            (tarfile.LNKTYPE, "/etc/passwd"),
            (tarfile.LNKTYPE, "../x"),
        ):
            with self.subTest(target=target):
                self.refuses(tar_of([(member("link", kind, target), None)]), "out of the archive")
        self.refuses(tar_of([(member("link", tarfile.SYMTYPE, "nowhere"), None)]), "not a file of the archive", code=1)
        self.refuses(
            tar_of([(member("a", tarfile.SYMTYPE, "b"), None), (member("b", tarfile.SYMTYPE, "a"), None)]),
            "not a file of the archive",
            code=1,
        )

    def test_through_a_link(self):
        """A link to a folder outside, then a file below that link: the link is refused."""
        self.refuses(tar_of([(member("l", tarfile.SYMTYPE, "/tmp"), None), ("l/evil", b"x")]), "out of the archive")
        self.refuses(
            tar_of([(member("l", tarfile.SYMTYPE, "."), None), ("l/x", b"x")]), "out of the archive|no file|both"
        )

    def test_a_device_or_pipe_is_refused(self):
        for kind in (tarfile.CHRTYPE, tarfile.FIFOTYPE):
            self.refuses(tar_of([(member("d", kind), None)]), "a device, a pipe or a socket")

    def test_what_is_left_out_may_be_anything(self):
        self.lay(d_tar=tar_of([(member("dev", tarfile.CHRTYPE), None), ("../evil", b"x"), ("good", b"1")]))
        self.succeeds(self.uri, {"good": b"1"}, "--ignore", "dev,*evil")

    def test_names_that_collide(self):
        self.refuses(tar_of([("a", b"1"), ("a/b", b"2")]), "a/b", code=1)
        shutil.rmtree(self.source)
        shutil.rmtree(self.target, ignore_errors=True)
        self.lay(a_tar=tar_of({"x": b"1"}), x=b"2")
        self.refused(self.uri, 1, "the objects 'x' and 'x' cannot both be below the target")

    def test_a_broken_archive_is_refused(self):
        tar = tar_of(FILES)
        compressed = tar_of(FILES, "gz")
        self.refuses(tar[:MIB], "broken", code=1)
        self.refuses(compressed[:MIB], "broken", code=1, name="d.tar.gz")
        damaged = bytearray(compressed)
        damaged[len(damaged) // 2] ^= 0xFF
        self.refuses(bytes(damaged), "broken", code=1, name="d.tar.gz")
        for name, data in (("d.tar.gz", compressed), ("d.tar.zst", zstd_of(tar))):
            with self.subTest(checksum=name):  # the last thing in the file
                self.refuses(data[:-4], "broken", code=1, name=name)
                damaged = bytearray(data)
                damaged[-5 if name.endswith("gz") else -1] ^= 1
                self.refuses(bytes(damaged), "broken", code=1, name=name)
        self.refuses(zip_of(FILES)[:-200], "broken", code=1, name="d.zip")
        self.refuses(b"<html>log in</html>" * 100, "not a tar, tar.gz, tar.zst or zip", code=1)
        self.refuses(b"", "not a tar, tar.gz, tar.zst or zip", code=1)

    def test_windows_that_take_much_memory(self):
        """At most 128 MiB, as in zstd, or what memory allows; the message says so. One such window at a time."""
        tar = tar_of(FILES)
        for name in ("a.tar.zst", "b.tar.zst", "c.tar.zst"):
            self.lay_at(f"{name[0]}/{name}", zstd_of(tar, "--long=27"))
        self.succeeds(self.uri, {f"{folder}/{path}": data for folder in "abc" for path, data in FILES.items()})
        # After a frame with a usual window.
        self.refuses(
            zstd_of(tar[:MIB]) + zstd_of(tar[MIB:], "--long=28"),
            "d.tar.zst: zstd: its window .--long, --ultra. needs 256 MiB of memory, "
            "and 128 MiB is available: compress with a smaller window",
            code=1,
            name="d.tar.zst",
        )

    def zip_of_a_window(self, data, log):
        """A zip with one member, compressed by lzma, whose header declares a dictionary of `log` bits."""
        packed = bytearray(zip_of({"a": b"before", "wide": data}, zipfile.ZIP_LZMA))
        header = packed.index(b"wide") + len("wide")
        self.assertEqual(packed[header + 2 : header + 4], b"\x05\x00")
        struct.pack_into("<I", packed, header + 5, 1 << log)
        return bytes(packed)

    def test_windows_of_a_zip(self):
        """A window counts at most the size of its member; several archives with windows are unpacked in parallel."""
        data = some_bytes(3 * MIB)
        for name in "abc":
            self.lay_at(f"{name}/{name}.zip", self.zip_of_a_window(data, 28))
        self.succeeds(
            self.uri,
            {f"{folder}/{path}": content for folder in "abc" for path, content in (("a", b"before"), ("wide", data))},
        )
        large = self.zip_of_a_window(bytes(129 * MIB), 28)
        self.refuses(
            large,
            "d.zip: 'wide': lzma: its window needs 129 MiB of memory, and 128 MiB is available: "
            "compress with a smaller window",
            code=1,
            name="d.zip",
        )

    def test_a_wrong_checksum_within(self):
        data = bytearray(zip_of({"f": some_bytes(10_000)}, zipfile.ZIP_STORED))
        data[5000] ^= 1
        self.refuses(bytes(data), "broken", code=1, name="d.zip")

    def test_an_encrypted_member_is_refused(self):
        """A zip whose member is marked as encrypted: flag bit 0 in both headers."""
        data = bytearray(zip_of({"f": b"secret"}, zipfile.ZIP_STORED))
        for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            place = data.index(signature) + at
            struct.pack_into("<H", data, place, struct.unpack_from("<H", data, place)[0] | 1)
        self.refuses(bytes(data), "encrypted", name="d.zip")

    def test_an_archive_that_grows_too_much_is_refused(self):
        deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
        chunk = bytes(16 * MIB)
        header = tarfile.TarInfo("zeros")
        header.size = 1100 * MIB
        parts = [deflate.compress(header.tobuf())]
        parts += [deflate.compress(chunk) for _ in range(header.size // len(chunk) + 1)]
        parts.append(deflate.flush())
        self.refuses(b"".join(parts), r"--extract-ratio \(now 100\)", code=1, name="d.tar.gz")
        self.refuses(
            tar_of({str(n): b"" for n in range(50)}), "--extract-members", code=1, flags=("--extract-members", "49")
        )

    def test_target_without_room(self):
        """More than the file system has room for: an error before the disk is full."""
        room = os.path.join(self.dir, "small")
        os.mkdir(room)
        if (
            os.getuid() != 0
            or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", room], check=False).returncode != 0
        ):
            self.skipTest("needs a mount of its own")
        self.addCleanup(subprocess.run, ["umount", room], check=True)
        self.target = os.path.join(room, "target")
        self.lay_at("d.tar.gz", tar_of({"big": bytes(8 * MIB)}, "gz"))
        self.refused(f"{self.uri}/d.tar.gz", 1, "(?i)no space")


if __name__ == "__main__":
    main()
