// One TCP flow in ns-3 between two hosts with a cable, as the model's is: `ns3-bulk SECONDS` prints
// how many packets both hosts received, and how many seconds of CPU that took.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

static std::uint64_t packets = 0;

static void Received(Ptr<const Packet>) { packets++; }

int main(int argc, char** argv)
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(256 << 10));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(256 << 10));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));

    NodeContainer hosts;
    hosts.Create(2);
    PointToPointHelper cable;
    cable.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    cable.SetDeviceAttribute("Mtu", UintegerValue(1500));
    cable.SetChannelAttribute("Delay", StringValue("20us"));
    NetDeviceContainer devices = cable.Install(hosts);
    InternetStackHelper().Install(hosts);
    Ipv4AddressHelper network("10.9.0.0", "255.255.255.0");
    Ipv4InterfaceContainer addresses = network.Assign(devices);
    for (std::uint32_t host = 0; host < 2; host++)
        devices.Get(host)->TraceConnectWithoutContext("MacRx", MakeCallback(&Received));

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 7001));
    sink.Install(hosts.Get(1)).Start(Seconds(0));
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(addresses.GetAddress(1), 7001));
    source.SetAttribute("SendSize", UintegerValue(131072));
    source.Install(hosts.Get(0)).Start(Seconds(0));

    Simulator::Stop(Seconds(seconds));
    const std::clock_t began = std::clock();
    Simulator::Run();
    std::cout << packets << " " << double(std::clock() - began) / CLOCKS_PER_SEC << std::endl;
    Simulator::Destroy();
}
