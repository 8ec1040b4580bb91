//! Remote memory: what `fi_read`, `fi_write` and their relatives call.

super::calls::table! {
    RmaOps, RmaMsg:
        read = recv, readv = recvv, readmsg = recvmsg, write = send, writev = sendv,
        writemsg = sendmsg, inject = inject, writedata = senddata, injectdata = injectdata;
    incoming(offset, key) => Subject::memory(offset, key);
    outgoing(offset, key) => Subject::memory(offset, key);
}
