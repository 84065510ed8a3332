# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nix build "path:.?dir=packaging" in a clone: the command. .#library is the C library, .#modules the schedulers for nixpkgs' kernel.
{
  description = "headwaiter: disk I/O scheduling that can be simulated, proved and deployed";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      version = "1.0.0";
      src = ./..;
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: {
        default = pkgs.python3Packages.buildPythonApplication {
          pname = "headwaiter";
          inherit version src;
          pyproject = true;
          build-system = with pkgs.python3Packages; [ meson-python ];
          nativeBuildInputs = with pkgs; [ meson ninja pkg-config ];
          dependencies = with pkgs.python3Packages; [ cffi click numpy rich tomli-w zstandard ];
          # pybuild of nixpkgs calls the backend; meson is its own.
          dontUseMesonConfigure = true;
          postInstall = ''
            install -D -m 644 systemd/headwaiter-watch.service $out/lib/systemd/system/headwaiter-watch.service
            substituteInPlace $out/lib/systemd/system/headwaiter-watch.service --replace-fail /usr/bin/headwaiter $out/bin/headwaiter
          '';
        };

        library = pkgs.stdenv.mkDerivation {
          pname = "libheadwaiter";
          inherit version src;
          nativeBuildInputs = with pkgs; [ meson ninja pkg-config ];
          doCheck = true;
        };

        modules = pkgs.stdenv.mkDerivation {
          pname = "headwaiter-modules";
          inherit version src;
          nativeBuildInputs = pkgs.linuxPackages.kernel.moduleBuildDependencies ++ [ pkgs.python3 ];
          dontConfigure = true;
          buildPhase = ''
            python3 kmod/build --headers ${pkgs.linuxPackages.kernel.dev}/lib/modules/${pkgs.linuxPackages.kernel.modDirVersion}/build \
              --btf ${pkgs.linuxPackages.kernel.dev}/vmlinux --output out
          '';
          installPhase = ''
            install -D -t $out/lib/modules/${pkgs.linuxPackages.kernel.modDirVersion}/extra out/*.ko
          '';
        };
      });
    };
}
