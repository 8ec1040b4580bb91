# Written by `earmark persist`; it replaces or removes only files that begin like this.
# Settings: rx-usecs 50 gro-flush-timeout 20000
{ pkgs, ... }:
{
  services.udev.extraRules = ''
    ACTION=="add", SUBSYSTEM=="net", NAME=="enp1s0", ATTR{gro_flush_timeout}="20000", RUN+="${pkgs.ethtool}/bin/ethtool -C enp1s0 rx-usecs 50"
    ACTION=="add", SUBSYSTEM=="net", NAME=="", KERNEL=="enp1s0", ATTR{gro_flush_timeout}="20000", RUN+="${pkgs.ethtool}/bin/ethtool -C enp1s0 rx-usecs 50"
  '';
}
