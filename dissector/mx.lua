-- Wireshark dissector of MX over Ethernet, as Earmark speaks it (docs/mx-protocol.md).
--
-- Install:  earmark mx dissector > ~/.local/lib/wireshark/plugins/mx.lua
-- Try:      tshark -X lua_script:mx.lua -r capture.pcapng
--
-- It takes frames of EtherType 0x86df, and guesses nothing. Frames in UDP have no port of their
-- own: say which one it is with "Decode As", or with  tshark -d udp.port==9000,mx

local mx = Proto("mx", "Message passing over Ethernet")

local HEADER = 24
local FLAG_CRC = 0x01
local REFUSED = UInt64(0xffffffff, 0xffffffff)

local TYPES = {
    [35] = "ack", [36] = "connect", [38] = "small", [39] = "medium", [40] = "rendezvous",
    [41] = "pull", [42] = "reply", [43] = "notify", [44] = "nack", [46] = "probe", [47] = "close",
}
-- Frames of these types are numbered; others tell the number of the next one.
local NUMBERED = { small = true, medium = true, rendezvous = true, notify = true, close = true }
local STATUS = {
    [0] = "request", [1] = "accepted", [2] = "key is wrong", [3] = "version is another one",
    [4] = "too many peers",
}
local REASONS = { [1] = "no such endpoint", [2] = "token is of an earlier life" }

local f = {
    type = ProtoField.uint8("mx.type", "Type", base.DEC, TYPES),
    flags = ProtoField.uint8("mx.flags", "Flags", base.HEX),
    mark = ProtoField.bool("mx.flags.mark", "Mark: a host waits for this", 8, nil, 0x80),
    ask = ProtoField.bool("mx.flags.ask", "Ask: acknowledge at once", 8, nil, 0x04),
    full = ProtoField.bool("mx.flags.full", "Full: begin no message", 8, nil, 0x02),
    crc = ProtoField.bool("mx.flags.crc", "A CRC32C follows the body", 8, nil, FLAG_CRC),
    to = ProtoField.uint8("mx.to", "To endpoint"),
    from = ProtoField.uint8("mx.from", "From endpoint"),
    token = ProtoField.uint32("mx.token", "Token", base.HEX),
    seq = ProtoField.uint32("mx.seq", "Sequence number"),
    next = ProtoField.uint32("mx.next", "Next sequence number"),
    ack = ProtoField.uint32("mx.ack", "Acknowledged: all before"),
    credit = ProtoField.uint32("mx.credit", "Credit in bytes"),
    window = ProtoField.uint16("mx.window", "Window in frames"),
    length = ProtoField.uint16("mx.length", "Length of the body"),
    bitmap = ProtoField.bytes("mx.ack.bitmap", "Arrived beyond the first that is missing"),
    arrived = ProtoField.uint32("mx.ack.arrived", "Arrived"),
    instance = ProtoField.uint64("mx.connect.instance", "Life of the endpoint", base.HEX),
    yours = ProtoField.uint32("mx.connect.token", "Token to be sent", base.HEX),
    key = ProtoField.uint32("mx.connect.key", "Key", base.HEX),
    version = ProtoField.uint16("mx.connect.version", "Version"),
    mtu = ProtoField.uint16("mx.connect.mtu", "MTU in bytes"),
    status = ProtoField.uint8("mx.connect.status", "Status", base.DEC, STATUS),
    wants_crc = ProtoField.uint8("mx.connect.crc", "Wants checksums"),
    match = ProtoField.uint64("mx.match", "Match information", base.HEX),
    total = ProtoField.uint64("mx.total", "Bytes of the message"),
    offset = ProtoField.uint64("mx.offset", "Offset in bytes"),
    data = ProtoField.bytes("mx.data", "Data"),
    region = ProtoField.uint32("mx.region", "Sender's name for the message"),
    pull = ProtoField.uint32("mx.pull", "Receiver's name for the transfer"),
    wanted = ProtoField.uint32("mx.pull.wanted", "Frames that are wanted", base.HEX),
    first = ProtoField.uint32("mx.pull.first", "Number of the first of them"),
    payload = ProtoField.uint16("mx.pull.payload", "Bytes of data in each"),
    index = ProtoField.uint32("mx.reply.index", "Number of the frame"),
    delivered = ProtoField.uint64("mx.notify.delivered", "Bytes delivered"),
    nacked = ProtoField.uint32("mx.nack.token", "Token of that frame", base.HEX),
    reason = ProtoField.uint8("mx.nack.reason", "Reason", base.DEC, REASONS),
    checksum = ProtoField.uint32("mx.checksum", "CRC32C", base.HEX),
}
mx.fields = f

local e = {
    short = ProtoExpert.new("mx.short", "Frame is shorter than it says",
        expert.group.MALFORMED, expert.severity.ERROR),
    unknown = ProtoExpert.new("mx.unknown", "Type is unknown",
        expert.group.UNDECODED, expert.severity.WARN),
    refused = ProtoExpert.new("mx.refused", "Receiver is being closed; nobody will ask for it",
        expert.group.SEQUENCE, expert.severity.NOTE),
}
mx.experts = e

local function data(buffer, at, tree)
    if at < buffer:len() then tree:add(f.data, buffer(at)) end
    return (buffer:len() - at) .. " bytes"
end

-- One for each type: adds the body's fields, and says the rest of the info column. `least` is what
-- the body has at least, in bytes.
local bodies = {
    ack = { least = 0, read = function(buffer, tree, ack)
        if buffer:len() == 0 then return "" end
        local item = tree:add(f.bitmap, buffer())
        local count = 0
        for j = 0, buffer:len() - 1 do
            local byte = buffer(j, 1):uint()
            for i = 0, 7 do
                if math.floor(byte / 2 ^ i) % 2 == 1 then
                    item:add(f.arrived, buffer(j, 1), (ack + 8 * j + i + 1) % 2 ^ 32)
                    count = count + 1
                end
            end
        end
        return count .. " beyond"
    end },
    connect = { least = 24, read = function(buffer, tree)
        tree:add(f.instance, buffer(0, 8))
        tree:add(f.yours, buffer(8, 4))
        tree:add(f.key, buffer(12, 4))
        tree:add(f.version, buffer(16, 2))
        tree:add(f.mtu, buffer(18, 2))
        tree:add(f.status, buffer(20, 1))
        tree:add(f.wants_crc, buffer(21, 1))
        return STATUS[buffer(20, 1):uint()] or "status is unknown"
    end },
    small = { least = 8, read = function(buffer, tree)
        tree:add(f.match, buffer(0, 8))
        return data(buffer, 8, tree)
    end },
    medium = { least = 16, read = function(buffer, tree)
        tree:add(f.match, buffer(0, 8))
        tree:add(f.total, buffer(8, 4), UInt64(buffer(8, 4):uint(), 0))
        tree:add(f.offset, buffer(12, 4), UInt64(buffer(12, 4):uint(), 0))
        local bytes = data(buffer, 16, tree)
        return bytes .. " at " .. buffer(12, 4):uint() .. " of " .. buffer(8, 4):uint()
    end },
    rendezvous = { least = 20, read = function(buffer, tree)
        tree:add(f.match, buffer(0, 8))
        tree:add(f.total, buffer(8, 8))
        tree:add(f.region, buffer(16, 4))
        data(buffer, 20, tree)
        return "region " .. buffer(16, 4):uint() .. ", " .. tostring(buffer(8, 8):uint64()) .. " bytes"
    end },
    pull = { least = 26, read = function(buffer, tree)
        tree:add(f.region, buffer(0, 4))
        tree:add(f.pull, buffer(4, 4))
        tree:add(f.offset, buffer(8, 8))
        tree:add(f.wanted, buffer(16, 4))
        tree:add(f.first, buffer(20, 4))
        tree:add(f.payload, buffer(24, 2))
        return "transfer " .. buffer(4, 4):uint() .. ", frames from " .. buffer(20, 4):uint()
    end },
    reply = { least = 8, read = function(buffer, tree)
        tree:add(f.pull, buffer(0, 4))
        tree:add(f.index, buffer(4, 4))
        local bytes = data(buffer, 8, tree)
        return "transfer " .. buffer(0, 4):uint() .. ", frame " .. buffer(4, 4):uint() .. ", " .. bytes
    end },
    notify = { least = 12, read = function(buffer, tree)
        tree:add(f.region, buffer(0, 4))
        local item = tree:add(f.delivered, buffer(4, 8))
        if buffer(4, 8):uint64() == REFUSED then
            item:add_proto_expert_info(e.refused)
            return "region " .. buffer(0, 4):uint() .. ", refused"
        end
        return "region " .. buffer(0, 4):uint() .. ", " .. tostring(buffer(4, 8):uint64()) .. " bytes"
    end },
    nack = { least = 8, read = function(buffer, tree)
        tree:add(f.nacked, buffer(0, 4))
        tree:add(f.reason, buffer(4, 1))
        return REASONS[buffer(4, 1):uint()] or "reason is unknown"
    end },
    probe = { least = 0, read = function() return "" end },
    close = { least = 0, read = function() return "" end },
}

local function add_header(buffer, tree, name)
    tree:add(f.type, buffer(0, 1))
    local flags = tree:add(f.flags, buffer(1, 1))
    for _, flag in ipairs({ f.mark, f.ask, f.full, f.crc }) do
        flags:add(flag, buffer(1, 1))
    end
    tree:add(f.to, buffer(2, 1))
    tree:add(f.from, buffer(3, 1))
    tree:add(f.token, buffer(4, 4))
    tree:add(NUMBERED[name] and f.seq or f.next, buffer(8, 4))
    tree:add(f.ack, buffer(12, 4))
    tree:add(f.credit, buffer(16, 4))
    tree:add(f.window, buffer(20, 2))
    tree:add(f.length, buffer(22, 2))
end

function mx.dissector(buffer, pinfo, root)
    pinfo.cols.protocol = "MX"
    local tree = root:add(mx, buffer())
    if buffer:len() < HEADER then
        tree:add_proto_expert_info(e.short)
        return
    end
    local name = TYPES[buffer(0, 1):uint()]
    local length = buffer(22, 2):uint()
    local with_crc = buffer(1, 1):uint() % 2 == FLAG_CRC
    add_header(buffer, tree, name)
    local info = (name or "unknown") .. " " .. buffer(3, 1):uint() .. " > " .. buffer(2, 1):uint()
    if buffer(1, 1):uint() >= 0x80 then info = info .. " marked" end
    pinfo.cols.info = info
    local body = bodies[name]
    if not body then
        tree:add_proto_expert_info(e.unknown)
        return
    end
    if length < body.least or HEADER + length + (with_crc and 4 or 0) > buffer:len() then
        tree:add_proto_expert_info(e.short)
        return
    end
    -- Wireshark has no empty ranges.
    local range = length > 0 and buffer(HEADER, length):tvb() or ByteArray.new():tvb("empty")
    local rest = body.read(range, tree, buffer(12, 4):uint())
    if rest ~= "" then pinfo.cols.info = info .. " " .. rest end
    if with_crc then tree:add(f.checksum, buffer(HEADER + length, 4)) end
end

DissectorTable.get("ethertype"):add(0x86df, mx)
DissectorTable.get("udp.port"):add_for_decode_as(mx)
