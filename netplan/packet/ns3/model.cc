// RoCE on ns-3: NICs with queue pairs, switches with a shared buffer, ECN and PFC, packet by packet.
//
// Built against the libraries of the ns3 wheel, by g++ or by cppyy (`netplan.packet.ns3.build`). Arrays in, arrays
// out (`NpInput`, `NpOutput`); every packet is an ns3::Packet with a header, every port an ns3::NetDevice on an
// ns3::Node, every event one of ns3::Simulator. The rules stand in docs/concepts/packets.md.

#include "ns3/channel.h"
#include "ns3/event-id.h"
#include "ns3/header.h"
#include "ns3/net-device.h"
#include "ns3/node.h"
#include "ns3/nstime.h"
#include "ns3/packet.h"
#include "ns3/random-variable-stream.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <limits>
#include <memory>
#include <vector>

// ---- What Python hands over. Field order and types are those of `netplan.packet.ns3.arrays`. ----

struct NpInput
{
    int64_t nNodes, nLinks, nFlows, nPaths, nWatch, nSamples;
    const double *rate, *delay, *kmin, *kmax, *pmax, *alpha, *room, *xoff;
    const int64_t *src, *dst;
    const int64_t *isSwitch, *lossless, *dynamic;
    const double *pool, *reserve, *offset, *egressAlpha, *limit;
    const double *size, *start, *window, *baseRtt;
    const int64_t *flowPtr, *pathPtr, *pathLink, *backPtr, *backLink;
    const int64_t *waits, *afterPtr, *after, *gates, *isGated;
    const int64_t* watch;
    const double* parameter;
    int64_t cc, seed, acksWait, dependsOnAck, variableWindow, goBackN;
    double payload, header, ackBytes, chunk, nackGap, timeout, cnpGap, end, sample, pauseBytes;
    int64_t progressFd;
};

struct NpOutput
{
    double *received, *finish, *started, *delivered, *resent;
    int64_t *marks, *cuts;
    double *peak, *area, *carried, *paused;
    int64_t *pauses, *drops;
    double *sampleReceived, *sampleQueue, *samplePaused;
    int64_t samples, packets, hops, events, status;
    double end;
};

namespace netplan
{

using namespace ns3;

constexpr double NEVER = std::numeric_limits<double>::infinity();

// As in `netplan.kernels.trains_state`; a test holds both equal.
enum Cc
{
    CC_NONE = 0,
    CC_DCQCN = 1,
    CC_DCTCP = 2,
    CC_HPCC = 3,
    CC_TIMELY = 4,
    CC_SWIFT = 5
};

enum Kind : uint8_t
{
    DATA,
    ACK,
    NACK,
    PAUSE,
    RESUME,
    TRIMMED
};

inline Time
Seconds64(double s)
{
    return PicoSeconds(static_cast<int64_t>(std::llround(s * 1e12)));
}

inline double
Now()
{
    return Simulator::Now().GetPicoSeconds() * 1e-12;
}

// What HPCC's switches write into a packet.
struct Telemetry
{
    double time, sent, queue;
};

using Telemetries = std::vector<Telemetry>;

// RoCE's headers, with what the model needs of them; the rest of their bytes is padding.
class RoceHeader : public Header
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netplan::RoceHeader").SetParent<Header>().AddConstructor<RoceHeader>();
        return tid;
    }

    TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return std::max<uint32_t>(bytes, 22);
    }

    void Serialize(Buffer::Iterator i) const override
    {
        i.WriteU32(flow);
        i.WriteU64(seq);
        i.WriteU64(sent);
        i.WriteU8(kind);
        i.WriteU8(mark);
        i.WriteU8(0, GetSerializedSize() - 22);
    }

    uint32_t Deserialize(Buffer::Iterator i) override
    {
        flow = i.ReadU32();
        seq = i.ReadU64();
        sent = i.ReadU64();
        kind = static_cast<Kind>(i.ReadU8());
        mark = i.ReadU8();
        return GetSerializedSize();
    }

    void Print(std::ostream& os) const override
    {
        os << "flow=" << flow << " seq=" << seq << " kind=" << int(kind) << " mark=" << int(mark);
    }

    uint32_t flow = 0;
    uint64_t seq = 0;  // first byte of data; of an ACK the bytes received, of a NACK the byte wanted
    uint64_t sent = 0; // time stamp [ps]
    uint32_t bytes = 22;
    Kind kind = DATA;
    uint8_t mark = 0;
};

// A packet on its way: the ns-3 packet, and what a switch keeps beside it.
struct Item
{
    Ptr<Packet> packet;
    RoceHeader header;
    const int64_t* path; // links still to be taken begin at path[hop]
    int hops;
    int hop;
    double wire; // bytes on a link
    double load; // payload
    std::shared_ptr<Telemetries> telemetry;
};

class World;

// The sending side of one direction of a cable, and the books of the port at its far end.
class Port : public NetDevice
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netplan::Port").SetParent<NetDevice>();
        return tid;
    }

    // -- figures
    World* world = nullptr;
    int number = 0, src = 0, dst = 0, reverse = -1;
    bool fromSwitch = false;
    double rate = 0, delay = 0, kmin = NEVER, kmax = NEVER, pmax = 1, alpha = 0, room = 0, xoff = 0;
    // -- transmitter
    std::deque<Item> frames, control, data; // pause frames in their own order, before all else
    bool busy = false, paused = false;
    double waiting = 0, peak = 0, area = 0, seen = 0, carried = 0, pausedSince = 0, pausedFor = 0;
    int64_t drops = 0;
    // -- NIC
    std::vector<int> flows;
    size_t turn = 0;
    EventId wake;
    // -- ingress at the far end
    double held = 0, roomUsed = 0;
    bool asked = false;
    int64_t pauses = 0;

    void Transmit(Item&& item);
    void Sent(Item item);
    void Serve();
    void Count(double bytes)
    {
        double now = Now();
        area += waiting * (now - seen);
        seen = now;
        waiting += bytes;
        peak = std::max(peak, waiting);
    }
    void SetPaused(bool stop)
    {
        if (stop == paused)
        {
            return;
        }
        paused = stop;
        if (stop)
        {
            pausedSince = Now();
        }
        else
        {
            pausedFor += Now() - pausedSince;
            Serve();
        }
    }

    // -- ns3::NetDevice
    void SetIfIndex(const uint32_t index) override
    {
        m_index = index;
    }
    uint32_t GetIfIndex() const override
    {
        return m_index;
    }
    Ptr<Channel> GetChannel() const override
    {
        return nullptr;
    }
    void SetAddress(Address) override
    {
    }
    Address GetAddress() const override
    {
        return Address();
    }
    bool SetMtu(const uint16_t) override
    {
        return false;
    }
    uint16_t GetMtu() const override
    {
        return 4096;
    }
    bool IsLinkUp() const override
    {
        return true;
    }
    void AddLinkChangeCallback(Callback<void>) override
    {
    }
    bool IsBroadcast() const override
    {
        return false;
    }
    Address GetBroadcast() const override
    {
        return Address();
    }
    bool IsMulticast() const override
    {
        return false;
    }
    Address GetMulticast(Ipv4Address) const override
    {
        return Address();
    }
    Address GetMulticast(Ipv6Address) const override
    {
        return Address();
    }
    bool IsBridge() const override
    {
        return false;
    }
    bool IsPointToPoint() const override
    {
        return true;
    }
    bool Send(Ptr<Packet>, const Address&, uint16_t) override
    {
        return false; // queue pairs send, not sockets
    }
    bool SendFrom(Ptr<Packet>, const Address&, const Address&, uint16_t) override
    {
        return false;
    }
    Ptr<Node> GetNode() const override
    {
        return m_node;
    }
    void SetNode(Ptr<Node> node) override
    {
        m_node = node;
    }
    bool NeedsArp() const override
    {
        return false;
    }
    void SetReceiveCallback(ReceiveCallback) override
    {
    }
    void SetPromiscReceiveCallback(PromiscReceiveCallback) override
    {
    }
    bool SupportsSendFrom() const override
    {
        return false;
    }

  private:
    Ptr<Node> m_node;
    uint32_t m_index = 0;
};

struct Switch
{
    bool is = false, lossless = true, dynamic = true;
    double pool = 0, reserve = 0, offset = 0, egressAlpha = 0, limit = 0;
    double shared = 0;
};

// A queue pair, both ends.
struct Qp
{
    double size = 0, start = 0, baseRtt = 0, window0 = 0;
    int nic = 0, firstPath = 0, nPaths = 1;
    // sender
    double line = 0, rate = 0, window = NEVER, next = 0, sent = 0, acked = 0, allowed = NEVER, resent = 0;
    bool begun = false;
    int64_t waits = 0, cuts = 0;
    double finish = NEVER, started = 0, lastNews = 0;
    std::deque<std::pair<double, double>> again; // lost alone: first byte, bytes
    // receiver
    double got = 0, received = NEVER, nackAt = 0, nackFor = -1, lastCnp = -NEVER;
    int64_t marks = 0;
    // congestion control: each protocol uses what is its own
    double target = 0, alpha = 1, tick = -1, bit = 0, cut = 0, stage = 0, byteStage = 0, cutGrid = 0;
    double bytesAt = NEVER;
    EventId raise, check;
    double seq = 0, batch = 0, seenMarks = 0, reduced = 0, high = 0; // DCTCP
    double lastRtt = 0, diff = 0;                                      // TIMELY
    double hRate = 0, util = 1;                                        // HPCC
    bool first = true;
    Telemetries last;
    double w = 0, srtt = 0, cutAt = -NEVER; // Swift
};

class World
{
  public:
    World(const NpInput* in, NpOutput* out)
        : in(*in),
          out(*out)
    {
    }

    void Build();
    void Run();
    void Read();

    // -- hosts
    void Begin(int f);
    bool MaySend(const Qp& q) const;
    void WakeNic(Port& nic);
    void SendData(int f, Port& nic);
    void Deliver(Item&& item);
    void Reply(const Item& item, Kind kind, uint64_t seq, double load);
    void Acknowledge(const Item& item);
    void Timeout(int f);
    void Done(int f);

    // -- switches
    void Arrive(Item item);
    void Enqueue(Item&& item);
    void Leave(const Item& item, Port& port);
    double Threshold(const Port& wayIn) const;
    void Frame(Port& wayIn, bool stop);

    // -- congestion control
    void SetWindow(Qp& q);
    void Start(Qp& q);
    void Cnp(int f);
    void AgeAlpha(Qp& q);
    void CutDcqcn(int f);
    void CheckDcqcn(int f);
    void TimerDcqcn(int f);
    void RaiseDcqcn(Qp& q, bool byBytes);
    void Dctcp(Qp& q, bool mark);
    void Timely(Qp& q, double rtt);
    void Hpcc(Qp& q, const Item& item);
    void Swift(Qp& q, double load, double rtt, int hops);

    void Sample();
    void Progress();

    NpInput in;
    NpOutput& out;
    std::vector<Ptr<Node>> nodes;
    std::vector<Ptr<Port>> ports;
    std::vector<Switch> switches;
    std::vector<Qp> qps;
    Ptr<UniformRandomVariable> dice;
    int64_t open = 0;
    double delivered = 0, wanted = 0;
};

// ---- Ports ----

void
Port::Transmit(Item&& item)
{
    busy = true;
    carried += item.wire;
    bool isData = item.header.kind == DATA;
    if (fromSwitch && isData)
    {
        // RED as the packet leaves: of what still waits behind it.
        if (waiting > kmax)
        {
            item.header.mark = 1;
        }
        else if (waiting > kmin && world->dice->GetValue(0, 1) < pmax * (waiting - kmin) / (kmax - kmin))
        {
            item.header.mark = 1;
        }
        if (item.telemetry)
        {
            item.telemetry->push_back({Now(), carried, waiting});
        }
    }
    world->out.hops++;
    Simulator::Schedule(Seconds64(item.wire / rate), &Port::Sent, this, item);
}

void
Port::Sent(Item item)
{
    busy = false;
    item.hop++;
    Simulator::ScheduleWithContext(dst, Seconds64(delay), &World::Arrive, world, item);
    Serve();
}

void
Port::Serve()
{
    if (busy)
    {
        return;
    }
    for (auto* queue : {&frames, &control})
    {
        if (!queue->empty())
        {
            Item item = std::move(queue->front());
            queue->pop_front();
            Transmit(std::move(item));
            return;
        }
    }
    if (paused)
    {
        return;
    }
    if (!fromSwitch)
    {
        world->WakeNic(*this);
        return;
    }
    if (data.empty())
    {
        return;
    }
    Item item = std::move(data.front());
    data.pop_front();
    Count(-item.wire);
    world->Leave(item, *this);
    Transmit(std::move(item));
}

// ---- Switches ----

double
World::Threshold(const Port& wayIn) const
{
    const Switch& s = switches[wayIn.dst];
    return s.dynamic ? std::max(s.pool - s.shared, 0.0) * wayIn.alpha : wayIn.xoff;
}

void
World::Frame(Port& wayIn, bool stop)
{
    if (wayIn.reverse < 0)
    {
        double late = wayIn.delay + in.pauseBytes / wayIn.rate;
        Simulator::Schedule(Seconds64(late), &Port::SetPaused, &wayIn, stop);
        return;
    }
    // The frame goes back on the same cable, before all data.
    Port& back = *ports[wayIn.reverse];
    Item frame;
    frame.header.kind = stop ? PAUSE : RESUME;
    frame.header.flow = wayIn.number;
    frame.header.bytes = static_cast<uint32_t>(in.pauseBytes);
    frame.packet = Create<Packet>();
    frame.packet->AddHeader(frame.header);
    frame.path = nullptr;
    frame.hops = 0;
    frame.hop = 0;
    frame.wire = in.pauseBytes;
    frame.load = 0;
    back.frames.push_back(std::move(frame));
    back.Serve();
}

void
World::Arrive(Item item)
{
    if (item.header.kind == PAUSE || item.header.kind == RESUME)
    {
        ports[item.header.flow]->SetPaused(item.header.kind == PAUSE);
        return;
    }
    if (item.hop == item.hops)
    {
        Deliver(std::move(item));
        return;
    }
    Enqueue(std::move(item));
}

void
World::Enqueue(Item&& item)
{
    Port& port = *ports[item.path[item.hop]];
    bool waits = item.header.kind == DATA || (in.acksWait && item.header.kind == ACK);
    if (!waits)
    {
        port.control.push_back(std::move(item));
        port.Serve();
        return;
    }
    if (!port.busy && !port.paused && port.data.empty() && port.control.empty() && port.frames.empty())
    {
        port.Transmit(std::move(item)); // nothing is kept of what goes straight on
        return;
    }
    Port& wayIn = *ports[item.path[item.hop - 1]];
    Switch& s = switches[port.src];
    double used = std::max(wayIn.held - s.reserve, 0.0);
    bool full = wayIn.roomUsed + item.wire > wayIn.room && used + item.wire > Threshold(wayIn);
    if (s.egressAlpha > 0 && !s.lossless)
    {
        full = full || port.waiting + item.wire > s.egressAlpha * std::max(s.pool - s.shared, 0.0);
    }
    if (s.limit > 0)
    {
        full = full || port.waiting + item.wire > s.limit;
    }
    if (full)
    {
        port.drops++;
        if (item.header.kind == DATA && !(in.goBackN && qps[item.header.flow].nPaths == 1))
        {
            item.header.kind = TRIMMED; // the receiver hears of it as if the header had gone on
            item.wire = in.header;
            port.control.push_back(std::move(item));
            port.Serve();
        }
        return;
    }
    double held = wayIn.held + item.wire;
    if (held <= s.reserve)
    {
        wayIn.held = held;
    }
    else if (held - s.reserve > Threshold(wayIn))
    {
        wayIn.roomUsed += item.wire;
    }
    else
    {
        wayIn.held = held;
        s.shared += std::min(item.wire, held - s.reserve);
    }
    if (s.lossless && !wayIn.asked)
    {
        used = std::max(wayIn.held - s.reserve, 0.0);
        if (wayIn.roomUsed > 0 || used >= Threshold(wayIn))
        {
            wayIn.asked = true;
            wayIn.pauses++;
            Frame(wayIn, true);
        }
    }
    port.Count(item.wire);
    port.data.push_back(std::move(item));
    port.Serve();
}

void
World::Leave(const Item& item, Port& port)
{
    Port& wayIn = *ports[item.path[item.hop - 1]];
    Switch& s = switches[port.src];
    double room = std::min(wayIn.roomUsed, item.wire);
    double shared = std::min(item.wire - room, std::max(wayIn.held - s.reserve, 0.0));
    wayIn.roomUsed -= room;
    wayIn.held -= item.wire - room;
    s.shared -= shared;
    double used = std::max(wayIn.held - s.reserve, 0.0);
    if (wayIn.asked && wayIn.roomUsed <= 0 && (used <= 0 || used + s.offset <= Threshold(wayIn)))
    {
        wayIn.asked = false;
        Frame(wayIn, false);
    }
}

// ---- Hosts ----

void
World::Begin(int f)
{
    Qp& q = qps[f];
    q.begun = true;
    q.started = Now();
    q.next = Now();
    q.lastNews = Now();
    Start(q);
    if (in.timeout > 0)
    {
        Simulator::Schedule(Seconds64(in.timeout), &World::Timeout, this, f);
    }
    WakeNic(*ports[q.nic]);
}

bool
World::MaySend(const Qp& q) const
{
    if (!q.begun || q.finish < NEVER)
    {
        return false;
    }
    if (!q.again.empty())
    {
        return true;
    }
    return q.sent < q.size && q.sent < q.allowed && q.sent - q.acked < q.window;
}

void
World::WakeNic(Port& nic)
{
    if (nic.busy || nic.paused)
    {
        return; // it looks again when it is free
    }
    if (!nic.control.empty() || !nic.frames.empty())
    {
        nic.Serve();
        return;
    }
    double now = Now(), soonest = NEVER;
    size_t n = nic.flows.size();
    for (size_t k = 0; k < n; k++)
    {
        size_t place = (nic.turn + k) % n;
        const Qp& q = qps[nic.flows[place]];
        if (!MaySend(q))
        {
            continue;
        }
        if (q.next <= now + 0.5e-12)
        {
            nic.turn = (place + 1) % n;
            SendData(nic.flows[place], nic);
            return;
        }
        soonest = std::min(soonest, q.next);
    }
    if (soonest < NEVER)
    {
        nic.wake.Cancel();
        nic.wake = Simulator::Schedule(Seconds64(soonest - now), &Port::Serve, &nic);
    }
}

void
World::SendData(int f, Port& nic)
{
    Qp& q = qps[f];
    double seq = q.sent, load = std::min(in.payload, q.size - q.sent);
    if (!q.again.empty())
    {
        seq = q.again.front().first;
        load = q.again.front().second;
        q.again.pop_front();
        q.resent += load;
    }
    else
    {
        load = std::min(load, q.allowed - q.sent);
        q.sent += load;
    }
    int path = q.firstPath;
    if (q.nPaths > 1)
    {
        path += static_cast<int>(dice->GetInteger(0, q.nPaths - 1));
    }
    Item item;
    item.header.flow = f;
    item.header.seq = static_cast<uint64_t>(seq);
    item.header.sent = static_cast<uint64_t>(Simulator::Now().GetPicoSeconds());
    item.header.bytes = static_cast<uint32_t>(in.header);
    item.path = in.pathLink + in.pathPtr[path];
    item.hops = static_cast<int>(in.pathPtr[path + 1] - in.pathPtr[path]);
    item.hop = 0;
    item.load = load;
    item.wire = load + in.header;
    item.packet = Create<Packet>(static_cast<uint32_t>(load));
    item.packet->AddHeader(item.header);
    if (in.cc == CC_HPCC)
    {
        item.telemetry = std::make_shared<Telemetries>();
        item.telemetry->reserve(item.hops);
    }
    out.packets++;
    q.next = std::max(Now(), q.next) + item.wire / std::min(q.rate, nic.rate);
    if (in.cc == CC_DCQCN && in.parameter[4] > 0 && q.sent >= q.bytesAt)
    {
        RaiseDcqcn(q, true);
        q.bytesAt = q.sent + in.parameter[4];
    }
    nic.Transmit(std::move(item));
}

void
World::Deliver(Item&& item)
{
    int f = item.header.flow;
    Qp& q = qps[f];
    if (item.header.kind == ACK || item.header.kind == NACK)
    {
        Acknowledge(item);
        return;
    }
    if (item.header.kind == TRIMMED)
    {
        Reply(item, NACK, item.header.seq, item.load);
        return;
    }
    double seq = static_cast<double>(item.header.seq), load = item.load;
    if (in.goBackN && q.nPaths == 1)
    {
        if (seq > q.got)
        {
            if (Now() >= q.nackAt || q.nackFor != q.got)
            {
                q.nackAt = Now() + in.nackGap;
                q.nackFor = q.got;
                Reply(item, NACK, static_cast<uint64_t>(q.got), 0);
            }
            return;
        }
        if (seq + load <= q.got)
        {
            return;
        }
        load = seq + load - q.got;
    }
    double before = q.got;
    q.got += load;
    delivered += load;
    q.marks += item.header.mark;
    if (q.got >= q.size && q.received == NEVER)
    {
        q.received = Now();
        if (!in.dependsOnAck)
        {
            Done(f);
        }
    }
    int64_t gated = in.gates[f];
    if (gated >= 0 && std::floor(q.got / in.chunk) > std::floor(before / in.chunk))
    {
        qps[gated].allowed = (std::floor(q.got / in.chunk) + 1) * in.chunk;
        WakeNic(*ports[qps[gated].nic]);
    }
    if (in.cnpGap > 0 && item.header.mark)
    {
        if (Now() < q.lastCnp + in.cnpGap)
        {
            item.header.mark = 0;
        }
        else
        {
            q.lastCnp = Now();
        }
    }
    bool cumulative = in.goBackN && q.nPaths == 1;
    Reply(item, ACK, static_cast<uint64_t>(cumulative ? q.got : load), load);
}

void
World::Reply(const Item& item, Kind kind, uint64_t seq, double load)
{
    int path = qps[item.header.flow].firstPath;
    Item reply;
    reply.header = item.header;
    reply.header.kind = kind;
    reply.header.seq = seq;
    reply.header.bytes = static_cast<uint32_t>(std::max(in.ackBytes, 22.0));
    reply.packet = Create<Packet>();
    reply.packet->AddHeader(reply.header);
    reply.path = in.backLink + in.backPtr[path];
    reply.hops = static_cast<int>(in.backPtr[path + 1] - in.backPtr[path]);
    reply.hop = 0;
    reply.wire = in.ackBytes;
    reply.load = load;
    reply.telemetry = item.telemetry;
    if (reply.hops == 0)
    {
        Acknowledge(reply);
        return;
    }
    Port& nic = *ports[reply.path[0]];
    nic.control.push_back(std::move(reply));
    nic.Serve();
}

void
World::Acknowledge(const Item& item)
{
    int f = item.header.flow;
    Qp& q = qps[f];
    if (q.finish < NEVER)
    {
        return;
    }
    q.lastNews = Now();
    Port& nic = *ports[q.nic];
    bool goBack = in.goBackN && q.nPaths == 1;
    double seq = static_cast<double>(item.header.seq);
    if (item.header.kind == NACK)
    {
        if (goBack)
        {
            q.acked = std::max(q.acked, seq);
            if (q.sent > q.acked)
            {
                q.resent += q.sent - q.acked;
                q.sent = q.acked;
            }
        }
        else
        {
            q.again.emplace_back(seq, item.load);
        }
        if (in.cc == CC_SWIFT && Now() - q.cutAt >= q.srtt)
        {
            q.cutAt = Now();
            q.cuts++;
            q.w = std::max(q.w * (1 - in.parameter[7]), 0.01 * in.payload);
            q.window = std::max(q.w, 1.0);
        }
        WakeNic(nic);
        return;
    }
    double before = q.acked;
    q.acked = goBack ? std::max(q.acked, seq) : q.acked + seq;
    q.sent = std::max(q.sent, goBack ? q.acked : q.sent);
    if (q.acked >= q.size)
    {
        q.finish = Now();
        q.raise.Cancel();
        q.check.Cancel();
        if (--open == 0)
        {
            Simulator::Stop();
        }
        if (in.dependsOnAck)
        {
            Done(f);
        }
        WakeNic(nic);
        return;
    }
    double rtt = (Simulator::Now().GetPicoSeconds() - static_cast<int64_t>(item.header.sent)) * 1e-12;
    bool mark = item.header.mark != 0;
    switch (in.cc)
    {
    case CC_DCQCN:
        if (mark)
        {
            Cnp(f);
        }
        break;
    case CC_DCTCP:
        Dctcp(q, mark);
        break;
    case CC_TIMELY:
        Timely(q, rtt);
        break;
    case CC_HPCC:
        Hpcc(q, item);
        break;
    case CC_SWIFT:
        Swift(q, q.acked - before, rtt, static_cast<int>(in.pathPtr[q.firstPath + 1] - in.pathPtr[q.firstPath]) - 1);
        break;
    default:
        break;
    }
    WakeNic(nic);
}

void
World::Timeout(int f)
{
    Qp& q = qps[f];
    if (q.finish < NEVER)
    {
        return;
    }
    double due = q.lastNews + in.timeout;
    if (Now() >= due - 1e-12)
    {
        if (q.sent > q.acked)
        {
            q.resent += q.sent - q.acked;
            q.sent = q.acked;
            WakeNic(*ports[q.nic]);
        }
        q.lastNews = Now();
        due = Now() + in.timeout;
    }
    Simulator::Schedule(Seconds64(due - Now()), &World::Timeout, this, f);
}

void
World::Done(int f)
{
    for (int64_t k = in.afterPtr[f]; k < in.afterPtr[f + 1]; k++)
    {
        int g = static_cast<int>(in.after[k]);
        if (--qps[g].waits == 0)
        {
            Simulator::Schedule(Seconds64(qps[g].start), &World::Begin, this, g);
        }
    }
}

// ---- Congestion control: one function a protocol, see netplan/congestion/cc ----

void
World::SetWindow(Qp& q)
{
    if (q.window0 <= 0)
    {
        q.window = NEVER;
    }
    else
    {
        q.window = in.variableWindow ? q.window0 * q.rate / q.line : q.window0;
    }
}

void
World::Start(Qp& q)
{
    q.line = ports[q.nic]->rate;
    q.rate = q.target = q.hRate = q.line;
    SetWindow(q);
    if (in.cc == CC_SWIFT)
    {
        double bdp = q.line * q.baseRtt * in.payload / (in.payload + in.header);
        q.w = in.parameter[8] > 0 ? in.parameter[8] : bdp;
        q.window = std::max(q.w, 1.0);
    }
}

// DCQCN: 0 gain, 1 alpha_s, 2 cut_s, 3 timer_s, 4 byte_counter, 5 steps, 6 ai, 7 hai, 8 min, 9 clamp, 10 on_cnp,
// 11 least part that a cut leaves
void
World::AgeAlpha(Qp& q)
{
    const double* p = in.parameter;
    double n = std::floor((Now() - q.tick) / p[1] + 1e-9);
    if (n <= 0)
    {
        return;
    }
    q.alpha = (1 - p[0]) * q.alpha + (q.bit > 0 ? p[0] : 0.0);
    q.bit = 0;
    q.alpha *= std::pow(1 - p[0], n - 1);
    q.tick += n * p[1];
}

void
World::Cnp(int f)
{
    Qp& q = qps[f];
    const double* p = in.parameter;
    double now = Now();
    if (p[10] > 0)
    { // the paper's: every CNP cuts at once
        if (q.tick >= 0)
        {
            AgeAlpha(q);
        }
        if (q.cutGrid > 0 && now < q.cutGrid + p[2])
        {
            return;
        }
        q.cutGrid = now;
        CutDcqcn(f);
        q.alpha = (1 - p[0]) * q.alpha + p[0];
        q.tick = now;
        return;
    }
    if (q.tick < 0)
    { // the first: the clocks begin, nothing is cut yet
        q.alpha = 1;
        q.bit = 0;
        q.tick = now;
        q.cutGrid = now + 1e-9;
        q.target = q.rate;
    }
    else
    {
        AgeAlpha(q);
        q.bit = 1;
    }
    if (q.cut > 0)
    {
        return;
    }
    q.cut = 1;
    double n = std::max(std::floor((now - q.cutGrid) / p[2]) + 1, 1.0);
    q.check = Simulator::Schedule(Seconds64(q.cutGrid + n * p[2] - now), &World::CheckDcqcn, this, f);
}

void
World::CheckDcqcn(int f)
{
    AgeAlpha(qps[f]);
    CutDcqcn(f);
}

void
World::CutDcqcn(int f)
{
    Qp& q = qps[f];
    const double* p = in.parameter;
    if (p[9] > 0 || q.stage + q.byteStage > 0 || p[10] > 0)
    {
        q.target = q.rate;
    }
    q.rate = std::max(p[8], q.rate * std::max(1 - q.alpha / 2, p[11]));
    q.stage = q.byteStage = q.cut = 0;
    q.raise.Cancel();
    q.raise = Simulator::Schedule(Seconds64(p[3]), &World::TimerDcqcn, this, f);
    q.bytesAt = p[4] > 0 ? q.sent + p[4] : NEVER;
    q.cuts++;
    SetWindow(q);
}

void
World::TimerDcqcn(int f)
{
    Qp& q = qps[f];
    RaiseDcqcn(q, false);
    q.raise = Simulator::Schedule(Seconds64(in.parameter[3]), &World::TimerDcqcn, this, f);
    WakeNic(*ports[q.nic]);
}

void
World::RaiseDcqcn(Qp& q, bool byBytes)
{
    const double* p = in.parameter;
    double other = p[4] > 0 ? q.byteStage : q.stage;
    double high = std::max(q.stage, other), low = std::min(q.stage, other);
    if (high >= p[5])
    {
        q.target = std::min(q.target + (low > p[5] ? p[7] : p[6]), q.line);
    }
    q.rate = (q.rate + q.target) / 2;
    (byBytes ? q.byteStage : q.stage) += 1;
    SetWindow(q);
}

// DCTCP: 0 gain, 1 ai, 2 min
void
World::Dctcp(Qp& q, bool mark)
{
    const double* p = in.parameter;
    q.seenMarks += mark;
    bool full = q.acked > q.seq;
    if (full)
    {
        if (q.seq == 0)
        {
            q.batch = std::floor(q.sent / in.payload) + 1;
        }
        else
        {
            q.alpha = (1 - p[0]) * q.alpha + p[0] * std::min(1.0, q.seenMarks / q.batch);
            q.seenMarks = 0;
            q.batch = std::floor((q.sent - q.acked) / in.payload) + 1;
        }
        q.seq = q.sent;
    }
    if (q.reduced > 0 && q.acked > q.high)
    {
        q.reduced = 0;
    }
    if (mark && q.reduced == 0)
    {
        q.rate = std::max(p[2], q.rate * (1 - q.alpha / 2));
        q.reduced = 1;
        q.high = q.sent;
        q.cuts++;
    }
    if (full && q.reduced == 0)
    {
        q.rate = std::min(q.line, q.rate + p[1]);
    }
    SetWindow(q);
}

// TIMELY: 0 ewma, 1 beta, 2 low, 3 high, 4 min_rtt, 5 ai, 6 hai, 7 min, 8 hai_after, 9 patched, 10 reference
void
World::Timely(Qp& q, double rtt)
{
    const double* p = in.parameter;
    if (q.acked <= q.seq)
    {
        return;
    }
    if (q.seq != 0)
    {
        q.diff = (1 - p[0]) * q.diff + p[0] * (rtt - q.lastRtt);
        double gradient = q.diff / p[4];
        bool rises = rtt < p[2] || (rtt <= p[3] && p[9] <= 0 && gradient <= 0);
        if (rises)
        {
            q.rate = std::min(q.line, q.rate + (q.stage < p[8] ? p[5] : p[6]));
            q.stage += 1;
        }
        else
        {
            double next = q.rate;
            if (rtt > p[3])
            {
                next *= 1 - p[1] * (1 - p[3] / rtt);
            }
            else if (p[9] > 0)
            {
                double weight = std::min(std::max(2 * gradient + 0.5, 0.0), 1.0);
                next *= std::max(1 - p[9] * weight * (rtt - p[10]) / p[10], 0.0);
                next += p[5] * (1 - weight);
            }
            else
            {
                next *= std::max(1 - p[1] * gradient, 0.0);
            }
            q.rate = std::min(q.line, std::max(p[7], next));
            q.stage = 0;
            q.cuts++;
        }
        SetWindow(q);
    }
    q.seq = std::max(q.sent, q.seq);
    q.lastRtt = rtt;
}

// HPCC: 0 eta, 1 stages, 2 ai, 3 min, 4 fast
void
World::Hpcc(Qp& q, const Item& item)
{
    const double* p = in.parameter;
    const Telemetries& news = *item.telemetry;
    if (q.first)
    {
        q.first = false;
        q.seq = q.sent;
        q.last = news;
        return;
    }
    double top = 0, span = 0;
    const int64_t* path = in.pathLink + in.pathPtr[q.firstPath];
    for (size_t h = 0; h < news.size() && h < q.last.size(); h++)
    {
        double tau = news[h].time - q.last[h].time;
        if (tau > 0)
        {
            double rate = ports[path[h + 1]]->rate;
            double u = (news[h].sent - q.last[h].sent) / tau / rate;
            u += std::min(news[h].queue, q.last[h].queue) * q.line / rate / q.window0;
            if (u > top)
            {
                top = u;
                span = tau;
            }
        }
    }
    q.last = news;
    span = std::min(span, q.baseRtt);
    q.util = (q.util * (q.baseRtt - span) + top * span) / q.baseRtt;
    double excess = q.util / p[0];
    bool full = q.acked > q.seq, decides = excess >= 1 || q.stage >= p[1];
    double next = (decides ? q.hRate / excess : q.hRate) + p[2];
    next = std::min(std::max(next, p[3]), q.line);
    if (full || p[4] > 0)
    {
        double wire = in.payload + in.header;
        q.next += wire / next - wire / q.rate; // the gap that runs is stretched or shortened too
        q.rate = next;
    }
    if (full)
    {
        q.hRate = next;
        q.stage = decides ? 0 : q.stage + 1;
        q.seq = std::max(q.sent, q.seq);
    }
    SetWindow(q);
}

// Swift: 0 base, 1 hop, 2 range, 3 range_min, 4 range_max, 5 ai, 6 beta, 7 max_cut, 8 first window
void
World::Swift(Qp& q, double load, double rtt, int hops)
{
    const double* p = in.parameter;
    double mtu = in.payload;
    bool mayCut = Now() - q.cutAt >= q.srtt;
    q.srtt = q.srtt == 0 ? rtt : 0.875 * q.srtt + 0.125 * rtt;
    double a = p[2] / (1 / std::sqrt(p[3]) - 1 / std::sqrt(p[4]));
    double b = -a / std::sqrt(p[4]);
    double target = p[0] + hops * p[1] + std::min(std::max(a / std::sqrt(q.w / mtu) + b, 0.0), p[2]);
    if (rtt < target)
    {
        q.w += q.w >= mtu ? p[5] * mtu * load / q.w : p[5] * load;
    }
    else if (mayCut)
    {
        q.w *= std::max(1 - p[6] * (rtt - target) / rtt, 1 - p[7]);
        q.cutAt = Now();
        q.cuts++;
    }
    q.w = std::min(std::max(q.w, 0.01 * mtu), 1e4 * mtu);
    q.window = std::max(q.w, 1.0);
    double part = mtu / (mtu + in.header);
    q.rate = q.w < mtu ? std::min(q.w / q.srtt / part, q.line) : q.line;
}

// ---- The run ----

void
World::Sample()
{
    int64_t row = out.samples;
    if (row >= in.nSamples)
    {
        return;
    }
    for (int64_t f = 0; f < in.nFlows; f++)
    {
        out.sampleReceived[row * in.nFlows + f] = qps[f].got;
    }
    for (int64_t k = 0; k < in.nWatch; k++)
    {
        const Port& port = *ports[in.watch[k]];
        out.sampleQueue[row * in.nWatch + k] = port.waiting;
    }
    for (int64_t k = 0; in.nWatch > 0 && k < in.nLinks; k++)
    {
        const Port& port = *ports[k];
        out.samplePaused[row * in.nLinks + k] = port.pausedFor + (port.paused ? Now() - port.pausedSince : 0);
    }
    out.samples++;
    Simulator::Schedule(Seconds64(in.sample), &World::Sample, this);
}

void
World::Progress()
{
    dprintf(static_cast<int>(in.progressFd), "%.6g %.6g %lld\n", delivered, wanted, (long long)out.packets);
    if (open > 0)
    {
        Simulator::Schedule(Seconds64(20e-6), &World::Progress, this);
    }
}

void
World::Build()
{
    RngSeedManager::SetSeed(20240229);
    RngSeedManager::SetRun(static_cast<uint64_t>(in.seed) + 1);
    dice = CreateObject<UniformRandomVariable>();
    dice->SetStream(1);
    switches.resize(in.nNodes);
    for (int64_t n = 0; n < in.nNodes; n++)
    {
        nodes.push_back(CreateObject<Node>());
        Switch& s = switches[n];
        s.is = in.isSwitch[n];
        s.lossless = in.lossless[n];
        s.dynamic = in.dynamic[n];
        s.pool = in.pool[n];
        s.reserve = in.reserve[n];
        s.offset = in.offset[n];
        s.egressAlpha = in.egressAlpha[n];
        s.limit = in.limit[n];
    }
    std::vector<std::vector<int>> into(in.nNodes);
    for (int64_t k = 0; k < in.nLinks; k++)
    {
        Ptr<Port> port = CreateObject<Port>();
        port->world = this;
        port->number = static_cast<int>(k);
        port->src = static_cast<int>(in.src[k]);
        port->dst = static_cast<int>(in.dst[k]);
        port->fromSwitch = in.isSwitch[in.src[k]];
        port->rate = in.rate[k];
        port->delay = in.delay[k];
        port->kmin = in.kmin[k];
        port->kmax = in.kmax[k];
        port->pmax = in.pmax[k];
        port->alpha = in.alpha[k];
        port->room = in.room[k];
        port->xoff = in.xoff[k];
        nodes[port->src]->AddDevice(port);
        ports.push_back(port);
        into[port->dst].push_back(static_cast<int>(k));
    }
    // The other direction of each cable: the next link the other way that no cable has yet.
    std::vector<bool> taken(in.nLinks, false);
    for (int64_t k = 0; k < in.nLinks; k++)
    {
        for (int back : into[ports[k]->src])
        {
            if (!taken[back] && ports[back]->src == ports[k]->dst)
            {
                ports[k]->reverse = back;
                taken[back] = true;
                break;
            }
        }
    }
    qps.resize(in.nFlows);
    for (int64_t f = 0; f < in.nFlows; f++)
    {
        Qp& q = qps[f];
        q.size = in.size[f];
        q.start = in.start[f];
        q.baseRtt = in.baseRtt[f];
        q.window0 = in.window[f];
        q.firstPath = static_cast<int>(in.flowPtr[f]);
        q.nPaths = static_cast<int>(in.flowPtr[f + 1] - in.flowPtr[f]);
        q.nic = static_cast<int>(in.pathLink[in.pathPtr[q.firstPath]]);
        q.waits = in.waits[f];
        if (in.isGated[f])
        {
            q.allowed = in.chunk;
        }
        ports[q.nic]->flows.push_back(static_cast<int>(f));
        wanted += q.size;
        if (q.waits == 0)
        {
            Simulator::Schedule(Seconds64(q.start), &World::Begin, this, static_cast<int>(f));
        }
    }
    open = in.nFlows;
}

void
World::Run()
{
    if (in.sample > 0)
    {
        Simulator::Schedule(Seconds64(in.sample), &World::Sample, this);
    }
    if (in.progressFd >= 0)
    {
        Simulator::Schedule(Seconds64(0), &World::Progress, this);
    }
    if (in.end < NEVER)
    {
        Simulator::Stop(Seconds64(in.end));
    }
    Simulator::Run();
}

void
World::Read()
{
    double end = Now();
    for (int64_t f = 0; f < in.nFlows; f++)
    {
        const Qp& q = qps[f];
        out.received[f] = q.received;
        out.finish[f] = q.finish;
        out.started[f] = q.started;
        out.delivered[f] = q.got;
        out.resent[f] = q.resent;
        out.marks[f] = q.marks;
        out.cuts[f] = q.cuts;
    }
    for (int64_t k = 0; k < in.nLinks; k++)
    {
        const Port& port = *ports[k];
        out.peak[k] = port.peak;
        out.area[k] = port.area + port.waiting * (end - port.seen);
        out.carried[k] = port.carried;
        out.paused[k] = port.pausedFor + (port.paused ? end - port.pausedSince : 0);
        out.pauses[k] = port.pauses;
        out.drops[k] = port.drops;
    }
    out.end = end;
    out.events = static_cast<int64_t>(Simulator::GetEventCount());
    out.status = open == 0 ? 0 : (end >= in.end * (1 - 1e-9) ? 1 : 2);
}

} // namespace netplan

// Returns 0; addresses of an NpInput and an NpOutput. Once per process: ns-3 keeps its time resolution.
extern "C" int
netplan_run(unsigned long long input, unsigned long long output)
{
    ns3::Time::SetResolution(ns3::Time::PS);
    netplan::World world(reinterpret_cast<const NpInput*>(input), reinterpret_cast<NpOutput*>(output));
    world.Build();
    world.Run();
    world.Read();
    ns3::Simulator::Destroy();
    return 0;
}
